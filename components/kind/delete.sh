#!/bin/sh
# States of 0.1.0 name this path for the command that deletes a kind cluster.
exec "${0%/*}/../../kai_fleet/components/cluster/kind/delete.sh"
