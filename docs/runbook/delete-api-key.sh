#!/usr/bin/env bash
# Deletes an API key in the tables, without a credential of its owner: docs/runbook.md#a-leaked-api-key

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/delete-api-key.sh USER_ID KEY_ID KEY_HASH

Deletes both items of the key and decrements the owner's key count, in one transaction. It changes nothing if one of the
items does not exist.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  *" 3") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
aws dynamodb transact-write-items --transact-items "[
  {\"Delete\":{\"TableName\":\"$STACK-api-keys\",\"Key\":{\"key_hash\":{\"S\":\"$3\"}},\"ConditionExpression\":\"attribute_exists(key_hash)\"}},
  {\"Delete\":{\"TableName\":\"$STACK-user-api-keys\",\"Key\":{\"user_id\":{\"S\":\"$1\"},\"id\":{\"S\":\"$2\"}},\"ConditionExpression\":\"attribute_exists(id)\"}},
  {\"Update\":{\"TableName\":\"$STACK-user-api-keys\",\"Key\":{\"user_id\":{\"S\":\"$1\"},\"id\":{\"S\":\"#count\"}},\"UpdateExpression\":\"ADD key_count :minusOne\",\"ExpressionAttributeValues\":{\":minusOne\":{\"N\":\"-1\"}}}}
]"
