#!/usr/bin/env bash
# Sets the rate limits of the API, until the next change of them: docs/runbook.md#rotate-the-jwt-secret

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/set-throttle.sh REQUESTS_PER_SECOND BURST

"0 0" closes the API: every request gets 429. Open it again with `throttle` of the stage in lib/stages.ts. Endpoints with
a throttle of their own never get more than that.
END
}

# The method settings of the endpoints with a throttle of their own, as in functions/foundation/manifest/endpoints.ts.
project='~1v1~1projects~1{project_id}'
webhook="$project~1webhooks~1{webhook_id}"
own_throttles="\
$webhook~1test/POST 5 20
$webhook~1deliveries~1{delivery_id}~1redeliver/POST 5 20
$webhook~1recover/POST 3 10
$webhook~1certify/POST 5 20
$project~1service-accounts~1{service_account_id}/DELETE 5 20"

# operations METHOD RATE BURST: prints the changes of one method setting
operations() {
  printf '{"op":"replace","path":"/%s/throttling/rateLimit","value":"%s"},' "$1" "$2"
  printf '{"op":"replace","path":"/%s/throttling/burstLimit","value":"%s"}' "$1" "$3"
}

lower() { echo $(($1 < $2 ? $1 : $2)); }

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
changes=$(operations '*/*' "$1" "$2")
while read -r method rate burst; do
  changes+=,$(operations "$method" "$(lower "$rate" "$1")" "$(lower "$burst" "$2")")
done <<< "$own_throttles"
aws apigateway update-stage --rest-api-id "$api" --stage-name "$STAGE" --patch-operations "[$changes]"
