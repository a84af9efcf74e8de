#!/usr/bin/env bash
# Deletes an API key in the tables, without a credential of its owner: docs/runbook.md#a-leaked-api-key

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/delete-api-key.sh USER_ID KEY_ID

Deletes all items of the key, those of previous secrets too, and decrements the owner's key count, in one transaction. The
audit log of the owner shows it, for a service account that of its project, the owner is notified, and services that cache
verified keys drop it. It changes nothing if the key does not exist, or is rolled or deleted in the meantime.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  *" 2") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
entry="{\"user_id\":{\"S\":\"$1\"},\"id\":{\"S\":\"$2\"}}"
read -ra found <<< "$(aws dynamodb get-item --table-name "$STACK-user-api-keys" --consistent-read --key "$entry" \
  --query 'Item.[project_id.S || `"user"`, key_hash.S, previous.L[].M.key_hash.S || `[]`][]' --output text)"
project=${found[0]:-None} hashes=("${found[@]:1}")
if [ "$project" = None ]; then
  echo "The user $1 has no API key $2." >&2
  exit 1
fi
scope=project:$project
if [ "$project" = user ]; then scope=user:$1 project=; fi
null='{"NULL":true}'
data="{\"api_key_id\":{\"S\":\"$2\"},\"user_id\":{\"S\":$(json "$1")},\"name\":$null,\"key_prefix\":$null,\"reason\":{\"S\":\"revoked_by_platform\"},\"secret\":{\"S\":\"current\"}}"
records= secrets=
for hash in "${hashes[@]}"; do
  secrets+="${secrets:+,}{\"S\":\"$hash\"}"
  records+="{\"Delete\":{\"TableName\":\"$STACK-api-keys\",\"Key\":{\"key_hash\":{\"S\":\"$hash\"}}}},"
done
now=$(date -u +%FT%T.000Z)
revocation="{\"day\":{\"S\":\"${now:0:10}\"},\"id\":{\"S\":\"$(new_id)\"},\"at\":{\"S\":\"$now\"},\"reason\":{\"S\":\"revoked_by_platform\"},\"key_id\":{\"S\":\"$2\"},\"key_hashes\":{\"L\":[$secrets]},\"expires_at\":{\"N\":\"$(($(date -u +%s) + 86400))\"}}"
aws dynamodb transact-write-items --transact-items "[
  $records
  {\"Delete\":{\"TableName\":\"$STACK-user-api-keys\",\"Key\":$entry,\"ConditionExpression\":\"key_hash = :seen\",\"ExpressionAttributeValues\":{\":seen\":{\"S\":\"${hashes[0]}\"}}}},
  {\"Update\":{\"TableName\":\"$STACK-user-api-keys\",\"Key\":{\"user_id\":{\"S\":\"$1\"},\"id\":{\"S\":\"#count\"}},\"UpdateExpression\":\"ADD key_count :minusOne\",\"ExpressionAttributeValues\":{\":minusOne\":{\"N\":\"-1\"}}}},
  {\"Put\":{\"TableName\":\"$STACK-revocations\",\"Item\":$revocation}},
  $(audit_put "$scope" api_key.deleted "$2"),
  $(notification_put api_key.revoked "$data" "${project:-$1}" "$project")
]"
