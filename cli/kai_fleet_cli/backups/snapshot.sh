# Runs in the control plane's container: print the SHA-256 of a snapshot of its store, then the
# snapshot. $1 is a name that nothing has in /tmp, $2 the seconds that it may take: without its store
# vCluster waits for ever.
set -e
file="/tmp/$1"
trap 'rm -f "$file"' EXIT
options="{\"type\":\"container\",\"container\":{\"path\":\"$file\"}}"
VCLUSTER_STORAGE_OPTIONS=$(printf %s "$options" | base64 | tr -d '\n') timeout "$2" /vcluster snapshot >&2
sha256sum "$file" | cut -c 1-64
cat "$file"
