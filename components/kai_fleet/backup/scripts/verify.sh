#!/bin/sh
# Reads all of the repository $RESTIC_REPOSITORY of vCluster $NAME, and its last backup into the folder
# $BACKUP, which is empty. $MESSAGE gets why that failed.
. "$(dirname "$0")/restic.sh"

ask
[ "$code" = 0 ] || explain "the repository cannot be opened"
run check --read-data >&2 || explain "the backups are not whole"
run restore latest --host "$NAME" --target "$BACKUP" >&2 || explain "the last backup cannot be read"
cd "$BACKUP" || fail "the last backup is empty"
[ -s snapshot.tar.gz ] && [ -s backup.json ] && [ -s certs.json ] && [ -s config.yaml ] ||
  fail "the last backup lacks one of its four files; see how the next one is taken: kubectl logs of its container read"
written=$(field sha256 <backup.json)
copied=$(sha256sum snapshot.tar.gz | cut -d ' ' -f 1)
[ "$written" = "$copied" ] ||
  fail "snapshot.tar.gz of the last backup has checksum $copied, and backup.json says $written; see how the next one is taken: kubectl logs of its container read"
cat backup.json
