#!/usr/bin/env bash
# Installs the packages of the lock file, and fails if one has no hash there. Runs no install script.
# Usage, in the root of the checkout, with the Node of .nvmrc: docs/github-actions/install.sh
set -euo pipefail

npm ci --ignore-scripts --no-audit --no-fund

# npm ci checks the hashes, and installs a package without one, as the lock file has some for other platforms.
unchecked=$(
  jq --raw-output --slurpfile lock package-lock.json '
    .packages | to_entries[] | select(.key | startswith("node_modules/")) | select(.value | (.link or .inBundle) | not) |
    select($lock[0].packages[.key].integrity | not) | .key' node_modules/.package-lock.json
)
if [ -n "$unchecked" ]; then
  echo "::error::Packages without a hash in package-lock.json: ${unchecked//$'\n'/, }"
  exit 1
fi

# The install script of the package "node" would download Node without a hash in the lock file.
wanted=$(jq --raw-output .devDependencies.node package.json)
if [ "$(node --version)" != "v$wanted" ]; then
  echo "::error::The job needs Node $wanted (.nvmrc), and has $(node --version)."
  exit 1
fi
ln -sf "$(command -v node)" node_modules/.bin/node
