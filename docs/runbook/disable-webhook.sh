#!/usr/bin/env bash
# Disables a webhook in its table, without a credential of its admin: docs/runbook.md#a-noisy-tenant

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/disable-webhook.sh PROJECT_ID WEBHOOK_ID

Its new deliveries are held and can be recovered. The audit log of the project shows it. Fails if the webhook does not exist
or is already disabled.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  *" 2") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
aws dynamodb transact-write-items --transact-items "[
  {\"Update\":{\"TableName\":\"$STACK-webhooks\",\"Key\":{\"project_id\":{\"S\":\"$1\"},\"id\":{\"S\":\"$2\"}},
    \"UpdateExpression\":\"SET disabled_at = :at, disabled_reason = :manual\",\"ConditionExpression\":\"attribute_exists(id) AND attribute_not_exists(disabled_at)\",
    \"ExpressionAttributeValues\":{\":at\":{\"S\":\"$(date -u +%FT%T.000Z)\"},\":manual\":{\"S\":\"manual\"}}}},
  $(audit_put "project:$1" webhook.disabled "$2" '{"reason":{"S":"manual"}}')
]"
