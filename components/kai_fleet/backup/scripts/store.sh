#!/bin/sh
# Starts a store of its own on the backup in $BACKUP, and compares what is in it. It runs in vCluster's image,
# with an empty /data, an empty configuration (SQLite), and kine in /binaries. $MESSAGE gets a line of JSON,
# or why it failed.
set -u
data=${DATA:-/data}
program=${VCLUSTER:-/vcluster}
work=$(mktemp -d)
fail() {
  printf '%s\n' "$1" | tee "$MESSAGE" >&2
  exit 1
}

storage() {
  printf '{"type":"container","container":{"path":"%s"}}' "$1" | base64 | tr -d '\n'
}

# Without what kine keeps for itself.
keys() {
  tar tzf "$1" 2>/dev/null | sed 's|^/*||' | grep -vxE 'registry/health|compact_rev_key' | sort
}

cluster() {
  system=$(tar tzf "$1" 2>/dev/null | grep -x '/*registry/namespaces/kube-system')
  tar xzOf "$1" "$system" 2>/dev/null | grep -aoE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | head -n 1
}

export VCLUSTER_NAME="$NAME"
VCLUSTER_STORAGE_OPTIONS=$(storage "$BACKUP/snapshot.tar.gz") timeout 600 "$program" restore >&2 ||
  fail "no store starts on the last backup of vCluster $NAME; its last lines are in the log of container store"
rm -f "$data/kine.sock"
"${KINE:-/binaries/kine}" "--endpoint=sqlite://$data/state.db" "--listen-address=unix://$data/kine.sock" --metrics-bind-address=0 >&2 &
kine=$!
for second in 1 2 3 4 5 6 7 8 9 10; do
  [ ! -S "$data/kine.sock" ] || break
  sleep 1
done
VCLUSTER_STORAGE_OPTIONS=$(storage "$work/again.tar.gz") timeout 300 "$program" snapshot >&2
read=$?
kill $kine
[ "$read" = 0 ] || fail "the store on the last backup of vCluster $NAME does not answer; its last lines are in the log of container store"

keys "$BACKUP/snapshot.tar.gz" >"$work/written"
keys "$work/again.tar.gz" >"$work/read"
written=$(wc -l <"$work/written" | tr -d ' ')
if ! cmp -s "$work/written" "$work/read"; then
  first=$(diff "$work/written" "$work/read" | grep '^[<>+-][^+-]' | head -n 1)
  fail "the store on the last backup of vCluster $NAME has other keys than its archive: $(wc -l <"$work/read" | tr -d ' ') in place of $written, first $first"
fi
uid=$(cluster "$BACKUP/snapshot.tar.gz")
[ -n "$uid" ] && [ "$uid" = "$(cluster "$work/again.tar.gz")" ] ||
  fail "the store on the last backup of vCluster $NAME has another namespace kube-system than its archive"
printf '{"keys": %s, "kinds": %s, "cluster": "%s"}\n' "$written" "$(cut -d / -f 1-2 "$work/read" | sort -u | wc -l | tr -d ' ')" "$uid" | tee "$MESSAGE"
