#!/bin/sh
# Keeps the folder $BACKUP in the repository $RESTIC_REPOSITORY of vCluster $NAME, and the last $KEEP there;
# 0 deletes none. At its end $MESSAGE has a line of JSON with its size, or why it failed.
. "$(dirname "$0")/restic.sh"
started=$(date +%s)

ask
if [ "$code" = 10 ] && ! has 'bucket does not exist|NoSuchBucket'; then
  run init >&2 || explain "no repository was begun"
elif [ "$code" != 0 ]; then
  explain "the repository cannot be opened"
fi

cd "$BACKUP" || fail "the folder $BACKUP is not there"
summary=$(run backup --json --quiet --host "$NAME" --tag kai-fleet .) || {
  code=$?
  explain "the backup was not kept"
}
if [ "$KEEP" != 0 ]; then
  run forget --group-by '' --keep-last "$KEEP" --prune >&2 ||
    explain "the backup is kept, and older ones were not removed"
fi
size=$(du -sk . | cut -f 1)
say "{\"snapshot\": \"$(printf '%s\n' "$summary" | field snapshot_id)\", \"kilobytes\": $size, \"seconds\": $(($(date +%s) - started))}"
