#!/bin/sh
# The language host that can be built is older than the engine: it does not hear which environment
# a program is to run in, and takes the first python3 on PATH.
PATH=@python@:$PATH exec @host@ "$@"
