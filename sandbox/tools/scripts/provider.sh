#!/bin/sh
# kai-fleet's stand-in for a Pulumi provider plugin; not Pulumi's own.
PYTHONPATH=@checkout@${PYTHONPATH:+:$PYTHONPATH} exec @python@ -m @module@ "$@"
