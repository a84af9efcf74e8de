# Stub of the AWS CLI: functions that bash defines when it starts (BASH_ENV), because to start programs would take most of the
# time of the tests. $DIR/<name> contains the next states of something, one per line; the last one remains. $DIR/setup sets
# the initial states and may override `extra`, which handles all other calls. The call number $FAIL_AT is rejected.

# option NAME ARGUMENTS: sets $value to the value of an option
option() { local name=$1; value=; while [ $# -gt 1 ]; do shift; [ "$1" = "$name" ] && { value=$2; return; }; done; }
# current NAME: sets $state to the current state
current() { IFS= read -r state < "$DIR/$1"; }
# next NAME: sets $state to the current state and advances to the next one
next() {
  local states
  [ -e "$DIR/$1" ] || return 1
  mapfile -t states < "$DIR/$1"
  state=${states[0]}
  [ "${#states[@]}" -le 1 ] || printf '%s\n' "${states[@]:1}" > "$DIR/$1"
}
# will_be NAME STATES: sets the next states
will_be() { local name=$1; shift; printf '%s\n' "$@" > "$DIR/$name"; }
aws_error() { echo "An error occurred ($1) when calling the operation: because" >&2; return 254; }
# In a subshell, like a program: it changes no variables of the script.
aws() (
  set +o pipefail
  echo "$*" >> "$DIR/calls"
  mapfile -t calls < "$DIR/calls"
  [ "${#calls[@]}" = "$FAIL_AT" ] && { aws_error AccessDeniedException; exit; }
  option --table-name "$@"; table=$value
  case "$1 $2" in
    "dynamodb describe-table")
      next "table-$table" && [ "$state" != GONE ] || { aws_error ResourceNotFoundException; exit; }
      echo "$state" ;;
    "dynamodb create-backup") echo arn:backup; [ -e "$DIR/backup" ] || will_be backup CREATING CREATING AVAILABLE ;;
    "dynamodb describe-backup") next backup && echo "$state" ;;
    "dynamodb update-table")
      current "table-$table"; [ "$state" = ACTIVE ] || { aws_error ResourceInUseException; exit; }
      will_be "table-$table" UPDATING ACTIVE ;;
    "dynamodb delete-table")
      state=missing; [ ! -e "$DIR/backup" ] || current backup
      echo "deleted $table while the backup was $state" >> "$DIR/written"
      will_be "table-$table" DELETING DELETING GONE ;;
    "dynamodb restore-table-from-backup")
      option --backup-arn "$@"; [ "$value" = arn:backup ] || { aws_error ValidationException; exit; }
      option --target-table-name "$@"; will_be "table-$value" CREATING CREATING ACTIVE ;;
    "dynamodb restore-table-to-point-in-time") option --target-table-name "$@"; will_be "table-$value" CREATING ACTIVE ;;
    *) extra "$@" ;;
  esac
)
# invoke_next: answers the call of a function with the next state of `answers`, and prints `FunctionError`
invoke_next() {
  local file
  for file; do :; done
  cat >> "$DIR/written"
  next answers; printf '%s' "$state" > "$file"
  case $state in *errorType*) echo Unhandled ;; *) echo None ;; esac
}
sleep() { :; }
extra() { :; }
. "$DIR/setup"
