#!/bin/sh
# The language host that can be built is older than the engine and stops at an option that it does
# not know; the environment to use is named by -virtualenv in any case.
for argument do
  shift
  case $argument in
    -toolchain=*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec @host@ "$@"
