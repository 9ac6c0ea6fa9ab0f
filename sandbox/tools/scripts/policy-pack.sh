#!/bin/sh
# Runs a policy pack written in Python: its own environment, else the one of kai-fleet.
#
# The engine passes its address, `.`, and the pack's runtime options as `-NAME=VALUE`. Python's
# argument parser would read -virtualenv as -v, so options are taken out here.
python=@python@
for argument do
  shift
  case $argument in
    -virtualenv=*) [ ! -x "${argument#*=}/bin/python" ] || python=${argument#*=}/bin/python ;;
    -*=*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "$python" -u -m pulumi.policy "$@"
