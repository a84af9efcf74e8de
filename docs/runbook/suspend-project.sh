#!/usr/bin/env bash
# Suspends and resumes a project, or disables and enables one webhook: docs/runbook.md#a-customer-floods-us

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/suspend-project.sh suspend|resume PROJECT_ID [WEBHOOK_ID]

While a project is suspended, nothing is sent for it: its events are held, and requests that send or create a webhook are
rejected. With WEBHOOK_ID, disables or enables only this webhook. Prints the answer of the function. Can be repeated.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  "suspend "[23]) suspended=true ;;
  "resume "[23]) suspended=false ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
webhook=
if [ $# = 3 ]; then webhook=",\"webhook_id\":$(json "$3")"; fi
invoke ProjectsSuspendFunctionName "{\"project_id\":$(json "$2")$webhook,\"suspended\":$suspended}"
