#!/usr/bin/env bash
# Disables a webhook in its table, without a credential of its admin: docs/runbook.md#a-noisy-tenant

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/disable-webhook.sh PROJECT_ID WEBHOOK_ID

Its new deliveries are held and can be recovered. The audit log of the project shows it, and its owners are notified. Fails if
the webhook does not exist or is already disabled.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  *" 2") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
key="{\"project_id\":{\"S\":\"$1\"},\"id\":{\"S\":\"$2\"}}"
read -ra found <<< "$(aws dynamodb get-item --table-name "$STACK-webhooks" --consistent-read --key "$key" \
  --query 'Item.[url.S, failing_since.S]' --output text)"
url=${found[0]:-None} since=${found[1]:-None}
if [ "$url" = None ]; then
  echo "The project $1 has no webhook $2." >&2
  exit 1
fi
# Of the URL the host only: path and query often have a token.
host=${url#*://} host=${host%%[/?#]*}
null='{"NULL":true}' failing_since="{\"S\":\"$since\"}"
if [ "$since" = None ]; then failing_since=$null; fi
data="{\"webhook_id\":{\"S\":\"$2\"},\"host\":{\"S\":$(json "$host")},\"failing_since\":$failing_since,\"status_code\":$null,\"error_code\":$null,\"reason\":{\"S\":\"manual\"}}"
aws dynamodb transact-write-items --transact-items "[
  {\"Update\":{\"TableName\":\"$STACK-webhooks\",\"Key\":$key,
    \"UpdateExpression\":\"SET disabled_at = :at, disabled_reason = :manual\",\"ConditionExpression\":\"attribute_exists(id) AND attribute_not_exists(disabled_at)\",
    \"ExpressionAttributeValues\":{\":at\":{\"S\":\"$(date -u +%FT%T.000Z)\"},\":manual\":{\"S\":\"manual\"}}}},
  $(audit_put "project:$1" webhook.disabled "$2" '{"reason":{"S":"manual"}}'),
  $(notification_put webhook.disabled "$data" "$1" "$1")
]"
