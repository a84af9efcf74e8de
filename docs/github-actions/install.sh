#!/usr/bin/env bash
# Installs the packages of the lock file, and fails if a package is not the one that it lists. Runs no install script.
# Usage, in the root of the checkout, with the Node of .nvmrc: docs/github-actions/install.sh
set -euo pipefail
report=$(mktemp) locked=$(mktemp)
cp package-lock.json "$locked"

# npm ci resolves nothing. It does not accept a lock file without the optional packages of other platforms, which is what npm
# writes on one platform (https://github.com/npm/cli/issues/4828). npm install takes what the lock file lists, with its
# hashes, and resolves what it lacks.
if ! npm ci --ignore-scripts --no-audit --no-fund 2> "$report"; then
  grep -q 'Missing: .* from lock file' "$report" || { cat "$report" >&2; exit 1; }
  echo "::warning::npm ci does not accept package-lock.json, which lacks packages of other platforms. Continuing with npm install."
  npm install --ignore-scripts --no-save --no-audit --no-fund
fi

others=$(
  jq --null-input --raw-output --slurpfile locked "$locked" --slurpfile installed node_modules/.package-lock.json '
    def identity: [.version, .integrity, .link];
    $installed[0].packages | to_entries[] | select((.value | identity) != ($locked[0].packages[.key] | identity)) | .key'
)
if [ -n "$others" ]; then
  echo "::error::Not the packages of package-lock.json: ${others//$'\n'/, }"
  exit 1
fi

# The install script of the package "node" would download Node without a hash in the lock file.
wanted=$(jq --raw-output .devDependencies.node package.json)
if [ "$(node --version)" != "v$wanted" ]; then
  echo "::error::The job needs Node $wanted (.nvmrc), and has $(node --version)."
  exit 1
fi
ln -sf "$(command -v node)" node_modules/.bin/node
