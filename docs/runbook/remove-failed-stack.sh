#!/usr/bin/env bash
# Removes what a failed first deployment of a stage has left: docs/runbook.md#the-first-deployment-failed

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/remove-failed-stack.sh list|remove

  list      print the resources that the rollback has left (type and name)
  remove    delete them, and then the stack, unless a table or a queue contains something

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

# Whether an error message of the AWS CLI means that the resource does not exist.
is_gone() {
  case $1 in
    *ResourceNotFoundException* | *NonExistentQueue* | *QueueDoesNotExist* | *"scheduled for deletion"* | *"marked for deletion"*) ;;
    *) return 1 ;;
  esac
}

# count_content TYPE NAME: prints the number of messages, whether a table has items (0 or 1), or gone
count_content() {
  local reply
  case $1 in
    AWS::DynamoDB::Table) reply=$(aws dynamodb scan --table-name "$2" --consistent-read --select COUNT --limit 1 --query Count --output text 2>&1) ;;
    AWS::SQS::Queue) reply=$(aws sqs get-queue-attributes --queue-url "$2" --output text --query 'sum(map(&to_number(@), values(Attributes)))' \
      --attribute-names ApproximateNumberOfMessages ApproximateNumberOfMessagesNotVisible ApproximateNumberOfMessagesDelayed 2>&1) ;;
    *) reply=0 ;;
  esac
  if is_gone "$reply"; then
    echo gone
  elif [[ $reply =~ ^[0-9]+$ ]]; then
    echo "$reply"
  else
    echo "$reply" >&2
    return 1
  fi
}

# delete COMMAND: runs a command that deletes a resource; succeeds if the resource does not exist
delete() {
  local reply
  reply=$("$@" 2>&1) && return
  is_gone "$reply" && return
  echo "$reply" >&2
  return 1
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
    count=$(count_content "$type" "$name") || return
    case $count in
      0 | gone) ;;
      *) echo "$name is not empty: nothing is deleted." >&2; return 1 ;;
    esac
  done <<< "$list"
  while read -r type name; do
    case $type in
      AWS::DynamoDB::Table) delete_table "$name" ;;
      AWS::SQS::Queue) delete aws sqs delete-queue --queue-url "$name" ;;
      AWS::Logs::LogGroup) delete aws logs delete-log-group --log-group-name "$name" ;;
      AWS::SecretsManager::Secret) delete aws secretsmanager delete-secret --secret-id "$name" --recovery-window-in-days 7 ;;
      AWS::Lambda::Version) ;; # deleted with its function
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
