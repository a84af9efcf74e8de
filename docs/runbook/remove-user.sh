#!/usr/bin/env bash
# Removes a user from all projects and deletes the user's API keys: docs/runbook.md#an-employee-left

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/remove-user.sh list|remove USER_ID

list prints the projects of the user. remove deletes the user's API keys and the user from the projects, and prints the answers of the
functions. USER_ID is the `sub` of the user's JWT; where the issuer has public keys, <issuer>#<sub>.
Can be repeated: do it again once the user's last JWT has expired.
END
}

# projects: prints the ids of the projects of the user
projects() (
  set -o pipefail
  aws dynamodb query --consistent-read --table-name "$STACK-projects" --key-condition-expression 'user_id = :user' \
    --expression-attribute-values "{\":user\":{\"S\":$USER_JSON}}" --projection-expression project_id --output text \
    --query 'Items[].project_id.S' | tr '\t' '\n' | { grep -v -e '^None$' -e '^$' || :; }
)

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  "list 2" | "remove 2") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
USER_JSON=$(json "$2")
[ "$1" = remove ] || { projects; exit; }
# The keys first: they work in all projects.
invoke ApiKeysRevokeAllFunctionName "{\"user_id\":$USER_JSON}" || exit
ids=$(projects) || exit
code=0
for id in $ids; do
  printf '%s ' "$id"
  invoke ProjectsRemoveMemberFunctionName "{\"user_id\":$USER_JSON,\"project_id\":\"$id\"}" || code=1
done
exit "$code"
