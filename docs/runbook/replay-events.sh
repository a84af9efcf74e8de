#!/usr/bin/env bash
# Creates the deliveries that were lost with a queue: docs/runbook.md#a-queue-was-purged

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/replay-events.sh SINCE [PROJECT_ID]

Creates the deliveries of the events received since SINCE that do not exist, of all projects that have webhooks, or of
one. SINCE is in UTC, such as 2026-11-21T03:00:00Z. Prints the answers of the function. Can be repeated.
END
}

# projects: prints the ids of the projects that have webhooks
projects() (
  set -o pipefail
  aws dynamodb scan --table-name "$STACK-webhooks" --projection-expression project_id --output text \
    --query 'Items[].project_id.S' | tr '\t' '\n' | { grep -v -e '^None$' -e '^$' || :; } | sort -u
)

# replay PROJECT_ID: calls the function until it has looked at all events of the project
replay() {
  local cursor='' failed
  while
    failed=$(aws lambda invoke --function-name "$FUNCTION" --cli-read-timeout 70 --query FunctionError --output text \
      --payload fileb:///dev/stdin "$ANSWER" <<< "{\"project_id\":\"$1\",\"since\":\"$SINCE\"${cursor:+,\"cursor\":\"$cursor\"}}") || return
    echo "$1 $(< "$ANSWER")"
    [ "$failed" = None ] || return
    cursor=$(sed -n 's/.*"next_cursor":"\([^"]*\)".*/\1/p' "$ANSWER")
    [ -n "$cursor" ]
  do :; done
  [[ $(< "$ANSWER") == *'"complete":true'* ]]
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  20*Z\ 1 | 20*Z\ 2) ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
SINCE=$1
FUNCTION=$(output DeliveriesReplayFunctionName) || exit
ids=${2:-$(projects)} || exit
ANSWER=$(mktemp)
trap 'rm -f "$ANSWER"' EXIT
code=0
for id in $ids; do
  replay "$id" || { echo "Project $id is not complete. Run the command again with this project." >&2; code=1; }
done
exit "$code"
