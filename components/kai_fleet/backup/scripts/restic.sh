# Functions of keep.sh and verify.sh. $NAME is the vCluster's name, $SECRET that of the Secret with restic's
# environment, and $MESSAGE the file for what the Job says at its end: one line.
set -u
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

say() {
  printf '%s\n' "$1" | tee "$MESSAGE"
}

fail() {
  say "$1" >&2
  exit 1
}

# A store that refuses something is asked for a quarter of an hour by restic. So the first question to it has
# two minutes, and what it was refused with is known by then.
ask() {
  timeout "${PATIENCE:-120}" restic --no-cache cat config 2>"$errors" >/dev/null
  code=$?
  cat "$errors" >&2
}

# A command of restic. Its errors are printed, and kept for `explain`. A lock that a killed Job left is
# removed once it is stale (30 minutes, or a process that is gone); that of a Job that runs is waited for.
run() {
  timeout "${MOST:-1500}" restic --no-cache --retry-lock "${WAIT:-5m}" "$@" 2>"$errors"
  code=$?
  if [ "$code" = 11 ]; then
    restic --no-cache unlock >&2
    restic --no-cache "$@" 2>"$errors"
    code=$?
  fi
  cat "$errors" >&2
  return $code
}

# End with a sentence that says what to do about the last error. $1 says what did not work.
explain() {
  case $code in
    11) fail "$1: another process has locked the repository; if none works on it, the lock is stale after 30 minutes, and the run after that removes it" ;;
    12) fail "$1: RESTIC_PASSWORD in Secret $SECRET is not the password of this repository; write the one with which the first backup was made" ;;
  esac
  if has 'bucket does not exist|NoSuchBucket|bucket.*not found|notFound.*bucket'; then
    fail "$1: there is no bucket $RESTIC_REPOSITORY; make it, or write the right address at backup.to"
  elif has 'access.?denied|InvalidAccessKey|Access Key Id|SignatureDoesNotMatch|signature we calculated|403 Forbidden|no credentials|AuthorizationFailure|could not find default credentials'; then
    fail "$1: the store refuses the credentials; write others into Secret $SECRET, or give the account of these Jobs the right to read, write and list below $RESTIC_REPOSITORY"
  elif has 'no space left|quota exceeded|QuotaExceeded|insufficient storage|XMinioStorageFull|EntityTooLarge'; then
    fail "$1: the target is full; give it more room, or keep fewer: backup.keep. The backups there are whole"
  elif has 'ciphertext verification failed|does not match|invalid data|corrupt|repository contains errors|wrong hash|damaged|unexpected EOF|invalid pack|hash mismatch|errors were found'; then
    fail "$1: what is in $RESTIC_REPOSITORY is not what was written there: somebody changed it, or it is damaged. Keep it as it is, and begin another repository at backup.to"
  elif has 'permission denied|read-only file system'; then
    fail "$1: this account may not write to the volume; let group 65534 write there, or take a class whose driver sets fsGroup"
  elif has 'no such host|connection refused|timeout|unreachable|certificate|server misbehaving'; then
    fail "$1: $RESTIC_REPOSITORY is not reached: $(last_error)"
  fi
  fail "$1: $(last_error)"
}

has() {
  grep -qiE "$1" "$errors"
}

# Where restic asked again and again, what it was answered.
last_error() {
  answer=$(sed -n 's/.*retrying after [^:]*: //p' "$errors" | tail -n 1)
  [ -n "$answer" ] || answer=$(sed -n 's/^Fatal: //p' "$errors" | tail -n 1)
  [ -n "$answer" ] || answer=$(sed '/^ *$/d' "$errors" | tail -n 1)
  printf '%s' "$answer" | cut -c 1-300
}

# The text or number of a field in JSON of one line on stdin; the last one if there are several.
field() {
  sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" | tail -n 1
}
