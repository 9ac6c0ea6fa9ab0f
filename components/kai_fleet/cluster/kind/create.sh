#!/usr/bin/env bash
# Create the kind cluster KIND_NAME as KIND_CONFIG (JSON) declares it. If this machine has GPUs, and
# KIND_GPUS is not `none`, they are in the node KIND_GPU_NODE. Prints the kubeconfig on stdout, all
# else on stderr. A second run continues after the last step that worked.
set -euo pipefail

here=$(dirname "$0")
python=${KIND_PYTHON:-.venv/bin/python}
control="$KIND_NAME-control-plane"
# A file in the node: the hash of its config, and whether it was created with GPUs. It reveals later
# changes, and clusters whose creation did not finish.
record=/etc/kai-fleet-made-from

say() { echo "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

bash "$here/check.sh"

# `gpus` is `yes` if the driver lists GPUs, else `why` says what is missing.
gpus=no
if [ "$KIND_GPUS" != none ]; then
  if ! command -v nvidia-smi >/dev/null; then
    why="nvidia-smi is not installed"
  elif ! listed=$(nvidia-smi -L 2>&1); then
    why="nvidia-smi fails: $(tail -n 1 <<<"$listed")"
  elif ! grep -q '^GPU ' <<<"$listed"; then
    why="nvidia-smi lists no GPU"
  else
    gpus=yes
    say "GPUs of this machine: $(grep -c '^GPU ' <<<"$listed")"
  fi
  if [ "$gpus" = no ] && [ "$KIND_GPUS" = all ]; then
    fail "kai-fleet:cluster.kind.gpus is all, but $why: install NVIDIA's driver and see that" \
      "nvidia-smi lists a GPU, or write gpus: auto for a cluster without"
  elif [ "$gpus" = no ]; then
    say "no GPU here ($why): the cluster is CPU only"
  fi
fi

wanted=$(printf '%s' "$KIND_CONFIG" | sha256sum | cut -d ' ' -f 1)
clusters=$(kind get clusters 2>/dev/null) || clusters=""
if grep -qx "$KIND_NAME" <<<"$clusters"; then
  for node in $(kind get nodes --name "$KIND_NAME" 2>/dev/null); do
    if [ "$(docker inspect --format '{{.State.Running}}' "$node")" != true ]; then
      say "starting $node"
      docker start "$node" >/dev/null || fail "$node does not start: docker logs $node says why"
    fi
  done
  made=$(docker exec "$control" cat "$record" 2>/dev/null) ||
    fail "there is a kind cluster $KIND_NAME that this program did not finish making: delete it" \
      "(kind delete cluster --name $KIND_NAME) and run the update again, or give yours another" \
      "kai-fleet:cluster.name"
  if [ "${made% *}" != "$wanted" ]; then
    fail "kai-fleet:cluster.kind was changed, and a kind cluster cannot be: take the stack down" \
      "(.venv/bin/fleet destroy --stack …), then bring it up again; or change it back"
  fi
  if [ "$gpus" = yes ] && [ "${made#* }" = no ]; then
    say "the cluster was made without GPUs and stays so; destroy the stack to have it with them"
    gpus=no
  fi
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  "$python" -m kai_fleet.cluster.kind.this_machine "$gpus" >"$folder/kind.yaml"
  say "making kind cluster $KIND_NAME"
  if ! kind create cluster --name "$KIND_NAME" --config "$folder/kind.yaml" --wait 180s >&2; then
    kind delete cluster --name "$KIND_NAME" >/dev/null 2>&1 || true
    fail "kind could not make cluster $KIND_NAME; its lines above say why. Often another program" \
      "has one of the ports 30000 and up, or Docker has too little memory"
  fi
  docker exec "$control" sh -c "echo $wanted $gpus >$record"
fi

if [ "$gpus" = yes ]; then
  say "setting up the NVIDIA container toolkit in $KIND_GPU_NODE"
  # An argument, because a command in the script might read the rest of it from standard input.
  docker exec "$KIND_GPU_NODE" bash -c "$(cat "$here/node_gpus.sh")" >&2 ||
    fail "GPUs cannot be used in $KIND_GPU_NODE; the line above says why. Write" \
      "kai-fleet:cluster.kind.gpus: none for a cluster without"
fi
kind get kubeconfig --name "$KIND_NAME"
