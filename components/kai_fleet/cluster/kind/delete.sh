#!/usr/bin/env bash
# Delete the kind cluster KIND_NAME. It is no error if there is none.
set -euo pipefail

bash "$(dirname "$0")/check.sh"
kind delete cluster --name "$KIND_NAME" >&2 || {
  echo "kind cluster $KIND_NAME cannot be deleted; the line above says why" >&2
  exit 1
}
