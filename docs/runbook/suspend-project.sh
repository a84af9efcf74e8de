#!/usr/bin/env bash
# Suspends a project or ends its suspension: docs/runbook.md#a-customer-floods-us

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/suspend-project.sh suspend|resume PROJECT_ID

While a project is suspended, nothing is sent for it: its events are held, and requests that send or create a webhook are
rejected. Prints the answer of the function. Can be repeated.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  "suspend 2") suspended=true ;;
  "resume 2") suspended=false ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
invoke ProjectsSuspendFunctionName "{\"project_id\":$(json "$2"),\"suspended\":$suspended}"
