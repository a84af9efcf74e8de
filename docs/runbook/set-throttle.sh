#!/usr/bin/env bash
# Sets the rate limit of the API, until the next deployment: docs/runbook.md#rotate-the-jwt-secret

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/set-throttle.sh REQUESTS_PER_SECOND BURST

"0 0" closes the API: every request gets 429. Open it again with `throttle` of the stage in lib/stages.ts.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  *" 2") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
api=$(part AWS::ApiGateway::RestApi Api) || {
  echo "$STACK has no API here. Check AWS_REGION and your credentials." >&2
  exit 1
}
aws apigateway update-stage --rest-api-id "$api" --stage-name "$STAGE" --patch-operations \
  "op=replace,path=/*/*/throttling/rateLimit,value=$1" "op=replace,path=/*/*/throttling/burstLimit,value=$2"
