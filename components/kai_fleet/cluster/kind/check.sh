#!/usr/bin/env bash
# Check that this machine can run a kind cluster. If not, print one sentence and exit with 1.
set -euo pipefail

fail() {
  echo "$*" >&2
  exit 1
}

command -v docker >/dev/null ||
  fail "kai-fleet:cluster.kind needs Docker, which is not installed here: install it" \
    "(https://docs.docker.com/engine/install/), or write context: with a cluster that there is"
docker info >/dev/null 2>&1 ||
  fail "Docker is installed, but its daemon does not answer: start it (sudo systemctl start" \
    "docker), and let yourself use it (sudo usermod -aG docker \$USER, then log in again)"
command -v kind >/dev/null ||
  fail "kai-fleet:cluster.kind needs kind, which is not installed here: install it" \
    "(https://kind.sigs.k8s.io/docs/user/quick-start/#installation), for example with" \
    "go install sigs.k8s.io/kind@latest"
