#!/usr/bin/env bash
# Disables a webhook in its table, without a credential of its admin: docs/runbook.md#a-noisy-tenant

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/disable-webhook.sh PROJECT_ID WEBHOOK_ID

Its new deliveries are held and can be recovered. Fails if the webhook does not exist or is already disabled.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  *" 2") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
aws dynamodb update-item --table-name "$STACK-webhooks" --key "{\"project_id\":{\"S\":\"$1\"},\"id\":{\"S\":\"$2\"}}" \
  --update-expression 'SET disabled_at = :at, disabled_reason = :manual' --condition-expression 'attribute_exists(id) AND attribute_not_exists(disabled_at)' \
  --expression-attribute-values "{\":at\":{\"S\":\"$(date -u +%FT%T.000Z)\"},\":manual\":{\"S\":\"manual\"}}"
