#!/usr/bin/env bash
# Stops the gradual deployments in progress and rolls them back: docs/runbook.md#roll-back-a-deployment

usage() {
  cat << 'END'
Usage: STAGE=prod docs/runbook/stop-gradual-deployments.sh

Stops those of the authorizer, the fan-out and the senders. Prints nothing if none is in progress.
END
}

case "${1:-} $#" in
  "--help 1" | "-h 1") usage; exit ;;
  " 0") ;;
  *) usage >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
application=$(part AWS::CodeDeploy::Application GradualDeployment) || {
  echo "$STACK has no gradual deployments here. Check AWS_REGION and your credentials." >&2
  exit 1
}
failed=0
groups=$(aws deploy list-deployment-groups --application-name "$application" --query 'deploymentGroups[]' --output text) || exit
for group in $groups; do
  ids=$(aws deploy list-deployments --application-name "$application" --deployment-group-name "$group" \
    --include-only-statuses InProgress --query 'deployments[]' --output text) || exit
  for id in $ids; do
    aws deploy stop-deployment --deployment-id "$id" --auto-rollback-enabled || failed=1
  done
done
exit "$failed"
