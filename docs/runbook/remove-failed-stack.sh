#!/usr/bin/env bash
# Removes what a failed first deployment of a stage has left: docs/runbook.md#the-first-deployment-failed

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/remove-failed-stack.sh list|remove

  list      print the resources that the rollback has left (type and name)
  remove    delete the tables, and then the stack, unless a table contains something

Both work only on a stack in ROLLBACK_COMPLETE, which was never live.
END
}

list_leftovers() {
  local state
  state=$(aws cloudformation describe-stacks --stack-name "$STACK" --query 'Stacks[0].StackStatus' --output text) || return
  [ "$state" = ROLLBACK_COMPLETE ] || {
    echo "$STACK is $state. Only a stack in ROLLBACK_COMPLETE is a failed first deployment." >&2
    return 1
  }
  aws cloudformation list-stack-resources --stack-name "$STACK" --output text \
    --query "StackResourceSummaries[?ResourceStatus=='DELETE_SKIPPED'].[ResourceType,PhysicalResourceId]"
}

# count_items TABLE: prints whether a table has items (0 or 1), or gone
count_items() {
  local reply
  reply=$(aws dynamodb scan --table-name "$1" --consistent-read --select COUNT --limit 1 --query Count --output text 2>&1)
  case $reply in
    *ResourceNotFoundException*) echo gone ;;
    0 | 1) echo "$reply" ;;
    *) echo "$reply" >&2; return 1 ;;
  esac
}

delete_table() {
  local state
  state=$(table_state "$1") || return
  [ "$state" = GONE ] && return
  aws dynamodb update-table --table-name "$1" --no-deletion-protection-enabled > /dev/null && wait_for ACTIVE table_state "$1" &&
    aws dynamodb delete-table --table-name "$1" > /dev/null && wait_for GONE table_state "$1"
}

remove() {
  local list type name count
  list=$(list_leftovers) || return
  while read -r type name; do
    [ "$type" = AWS::DynamoDB::Table ] || continue
    count=$(count_items "$name") || return
    case $count in
      0 | gone) ;;
      *) echo "$name is not empty: nothing is deleted." >&2; return 1 ;;
    esac
  done <<< "$list"
  while read -r type name; do
    case $type in
      AWS::DynamoDB::Table) delete_table "$name" ;;
      ?*) echo "Not deleted: $type $name" ;;
    esac || return
  done <<< "$list"
  delete_stack
}

delete_stack() {
  aws cloudformation update-termination-protection --stack-name "$STACK" --no-enable-termination-protection > /dev/null &&
    aws cloudformation delete-stack --stack-name "$STACK" &&
    aws cloudformation wait stack-delete-complete --stack-name "$STACK"
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  "list 1" | "remove 1") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
case $1 in
  list) list_leftovers ;;
  remove) remove ;;
esac
