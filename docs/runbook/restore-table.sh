#!/usr/bin/env bash
# Restores a table of a stage: docs/runbook.md#restore-a-table

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/restore-table.sh COMMAND TABLE [...]

  restore TABLE TIME            restore TABLE as it was at TIME into the new table TABLE-restored
  copy-rows TABLE KEY           copy the rows that TABLE lacks from TABLE-restored; KEY is its partition key (needs jq)
  replace TABLE [BACKUP_ARN]    replace TABLE by TABLE-restored: back up, delete, restore, protect
                                With BACKUP_ARN it continues after the backup.
  protect TABLE                 wait for TABLE and set what a restore does not set: deletion protection,
                                point-in-time recovery, time to live, the policy of a table of secrets

TABLE is a name without the stage, such as webhooks. TIME is in UTC, such as 2026-11-21T03:00:00Z.
END
}

restore() {
  aws dynamodb restore-table-to-point-in-time --source-table-name "$TABLE" --target-table-name "$TABLE-restored" \
    --restore-date-time "$1" > /dev/null && wait_for ACTIVE table_state "$TABLE-restored" && copy_policy "" -restored
}

# Copies the policy that denies secrets to other principals, from TABLE with one suffix to TABLE with another one.
copy_policy() {
  [ "$TABLE" = "$STACK-webhook-secrets" ] || return 0
  local arn policy
  arn=$(aws dynamodb describe-table --table-name "$TABLE" --query Table.TableArn --output text) &&
    policy=$(aws dynamodb get-resource-policy --resource-arn "$arn$1" --query Policy --output text) &&
    aws dynamodb put-resource-policy --resource-arn "$arn$2" --policy "${policy//"$arn$1"/$arn$2}" > /dev/null || {
    echo "$TABLE$2 has no policy: everyone who may read DynamoDB can read its secrets." >&2
    return 1
  }
}

# Puts the rows that are missing and keeps those that exist, which are newer. Can be repeated.
copy_rows() (
  set -o pipefail
  aws dynamodb scan --table-name "$TABLE-restored" --output json | jq -c '.Items[]' | {
    copied=0 existing=0 failed=0
    while read -r item; do
      # Through stdin: a row may be longer than an argument, and the list of processes shows arguments.
      if reply=$(aws dynamodb put-item --table-name "$TABLE" --item file:///dev/stdin --condition-expression "attribute_not_exists($1)" 2>&1 <<< "$item"); then
        copied=$((copied + 1))
      elif [[ $reply == *ConditionalCheckFailedException* ]]; then
        existing=$((existing + 1))
      else
        failed=$((failed + 1))
        echo "$reply" >&2
      fi
    done
    echo "copied $copied, already there $existing, failed $failed"
    [ "$failed" = 0 ]
  } || { echo "Not all rows of $TABLE-restored were copied. Fix the errors above and run the command again." >&2; return 1; }
)

# Prints the status of a backup, or False if it is a backup of another table.
backup_state() {
  aws dynamodb describe-backup --backup-arn "$1" --output text --query \
    "BackupDescription.SourceTableDetails.TableName == '$TABLE-restored' && BackupDescription.BackupDetails.BackupStatus"
}

back_up() {
  BACKUP=$(aws dynamodb create-backup --table-name "$TABLE-restored" --backup-name "$TABLE-swap" --query BackupDetails.BackupArn --output text) &&
    echo "Backup: $BACKUP" >&2 && wait_for AVAILABLE backup_state "$BACKUP"
}

# Deletes the table and restores the backup under its name.
swap() {
  local state
  state=$(backup_state "$BACKUP") && [ "$state" = AVAILABLE ] || {
    echo "There is no available backup of $TABLE-restored: nothing is deleted." >&2
    return 1
  }
  state=$(table_state "$TABLE") || return
  case $state in
    GONE) ;;
    DELETING) wait_for GONE table_state "$TABLE" || return ;;
    *)
      aws dynamodb update-table --table-name "$TABLE" --no-deletion-protection-enabled > /dev/null &&
        wait_for ACTIVE table_state "$TABLE" &&
        aws dynamodb delete-table --table-name "$TABLE" > /dev/null &&
        wait_for GONE table_state "$TABLE" || return
      ;;
  esac
  aws dynamodb restore-table-from-backup --backup-arn "$BACKUP" --target-table-name "$TABLE" > /dev/null
}

protect() {
  wait_for ACTIVE table_state "$TABLE" &&
    aws dynamodb update-table --table-name "$TABLE" --deletion-protection-enabled > /dev/null &&
    wait_for ACTIVE table_state "$TABLE" &&
    aws dynamodb update-continuous-backups --table-name "$TABLE" --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true > /dev/null || return
  local attribute=
  case ${TABLE#"$STACK-"} in
    deliveries | events | request-budgets | audit-events | idempotency-keys | revocations) attribute=expires_at ;;
    api-keys | member-versions) attribute=delete_after ;;
  esac
  if [ -n "$attribute" ]; then
    aws dynamodb update-time-to-live --table-name "$TABLE" --time-to-live-specification "Enabled=true,AttributeName=$attribute" > /dev/null || return
  fi
  copy_policy -restored ""
}

replace() {
  BACKUP=${1:-}
  if [ -z "$BACKUP" ]; then back_up || return; fi
  swap || {
    echo "To continue: docs/runbook/restore-table.sh replace ${TABLE#"$STACK-"} $BACKUP" >&2
    return 1
  }
  protect || {
    echo "To continue: docs/runbook/restore-table.sh protect ${TABLE#"$STACK-"}" >&2
    return 1
  }
  # The break-glass role, which alone may replace this table, may not read the stack.
  if [ "$TABLE" = "$STACK-webhook-secrets" ]; then
    echo "Replaced. Then, with your own role: aws cloudformation detect-stack-drift --stack-name $STACK" >&2
  else
    aws cloudformation detect-stack-drift --stack-name "$STACK"
  fi
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  "restore 3" | "copy-rows 3" | "replace 2" | "replace 3" | "protect 2") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
TABLE=$STACK-$2
case $1 in
  restore) restore "$3" ;;
  copy-rows) copy_rows "$3" ;;
  replace) replace "${3:-}" ;;
  protect) protect ;;
esac
