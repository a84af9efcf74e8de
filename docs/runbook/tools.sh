# Functions that the commands in docs/runbook.md and the scripts beside this file use.
# Usage, in bash: export STAGE=prod; . docs/runbook/tools.sh

: "${STAGE:?Set the stage first, for example: export STAGE=prod}"
export STACK=deployment-webhooks-$STAGE

# output NAME: prints an output of the stack, for example: output ApiUrl
output() {
  aws cloudformation describe-stacks --stack-name "$STACK" --output text \
    --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue"
}

# part TYPE PREFIX: prints the physical names of the resources of TYPE whose logical id begins with PREFIX, one per line
part() {
  aws cloudformation list-stack-resources --stack-name "$STACK" --output text \
    --query "StackResourceSummaries[?ResourceType=='$1' && starts_with(LogicalResourceId, '$2')].PhysicalResourceId" |
    tr '\t' '\n' | grep -v -e '^None$' -e '^$'
}

# fn PREFIX: prints the name of a Lambda function, for example: fn WorkersAttemptsSendFunction
fn() { part AWS::Lambda::Function "$1"; }

# mappings: prints the event source mapping of each queue: its id, function and state
mappings() {
  local id ids
  ids=$(part AWS::Lambda::EventSourceMapping '') || {
    echo "mappings: $STACK has no event source mappings here. Check AWS_REGION and your credentials." >&2
    return 1
  }
  for id in $ids; do
    aws lambda get-event-source-mapping --uuid "$id" --output text --query '[UUID,FunctionArn,State,StateTransitionReason]' ||
      return
  done
}

# ask LOGS MINUTES QUERY: prints the result of a Logs Insights query over the last minutes, for example:
# ask WorkersAttemptsSendLogs 60 'filter message = "attempt" | limit 5'
ask() {
  local group now id state
  group=$(part AWS::Logs::LogGroup "$1") || {
    echo "ask: $STACK has no log group $1 here. Check AWS_REGION and your credentials." >&2
    return 1
  }
  now=$(date +%s)
  id=$(aws logs start-query --log-group-name "$group" --start-time $((now - $2 * 60)) --end-time "$now" \
    --query-string "$3" --query queryId --output text) || { echo "ask: the query was rejected." >&2; return 1; }
  while state=$(aws logs get-query-results --query-id "$id" --query status --output text); do
    case $state in
      Scheduled | Running) sleep 1 ;;
      Complete) aws logs get-query-results --query-id "$id" --query 'results[*][*].value' --output text; return ;;
      *) break ;;
    esac
  done
  echo "ask: the query did not complete: ${state:-its status is not available}" >&2
  return 1
}

# call CURL_ARGUMENTS: calls curl with the credential in $KEY, without showing it in the list of processes, for example:
# read -rs KEY; call "$(output ApiUrl)/v1/projects"
call() { printf 'header = "Authorization: Bearer %s"\n' "$KEY" | curl --config - --silent --show-error "$@"; }

# json TEXT: prints a text as a JSON string. The text has no control characters.
json() {
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}

# invoke OUTPUT PAYLOAD: calls the function that an output of the stack names and prints its answer. Fails if the function
# fails. Example: invoke ApiKeysRevokeAllFunctionName '{"user_id":"bob"}'
invoke() (
  name=$(output "$1") || exit
  [ -n "$name" ] || { echo "invoke: $STACK has no output $1. Check AWS_REGION." >&2; exit 1; }
  answer=$(mktemp)
  trap 'rm -f "$answer"' EXIT
  failed=$(aws lambda invoke --function-name "$name" --cli-read-timeout 70 --query FunctionError --output text \
    --payload fileb:///dev/stdin "$answer" <<< "$2") || exit
  echo "$(< "$answer")"
  [ "$failed" = None ] || { echo "invoke: $name failed." >&2; exit 1; }
)

# table_state TABLE: prints the status of a table, or GONE if it does not exist
table_state() {
  local reply
  if reply=$(aws dynamodb describe-table --table-name "$1" --query Table.TableStatus --output text 2>&1); then
    echo "$reply"
  elif [[ $reply == *ResourceNotFoundException* ]]; then
    echo GONE
  else
    echo "$reply" >&2
    return 1
  fi
}

# wait_for STATE COMMAND: runs COMMAND every ten seconds, for hours if needed, until it prints STATE. Fails if it prints
# a state that is not temporary (…ING). Example: wait_for ACTIVE table_state deployment-webhooks-prod-webhooks
wait_for() {
  local wanted=$1 state
  shift
  while sleep 10 && state=$("$@"); do
    echo "$(date +%T) $*: $state" >&2
    case $state in
      "$wanted") return ;;
      *ING) ;;
      *) break ;;
    esac
  done
  echo "Stopped: $* is not $wanted." >&2
  return 1
}
