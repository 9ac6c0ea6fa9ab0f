#!/usr/bin/env bash
# Runs inside the kind node with the GPUs. The driver is mounted there, but containers cannot use it
# yet. Installs NVIDIA's container toolkit, makes it containerd's default runtime, and checks each
# step.
set -euo pipefail

home=https://nvidia.github.io/libnvidia-container
key=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg
wait=${NODE_WAIT_SECONDS:-60}

fail() {
  echo "$*" >&2
  exit 1
}
quietly() { # print the last lines of a command if it fails, and nothing if it works
  local said
  said=$("$@" 2>&1) || {
    tail -n 3 <<<"$said" >&2
    return 1
  }
}

# The libraries were mounted as files; ldconfig creates the links by which programs find them.
ldconfig
nvidia-smi -L >&2 ||
  fail "nvidia-smi does not work in the node. After a new driver the libraries mounted into it are" \
    "the old ones: make the cluster anew (docs/local-gpu.md)"

if ! command -v nvidia-ctk >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  quietly apt-get update || fail "apt-get update fails in the node: it needs Debian's mirrors"
  quietly apt-get install -y --no-install-recommends ca-certificates curl gpg ||
    fail "curl and gpg cannot be installed in the node: it needs Debian's mirrors"
  curl -fsSL "$home/gpgkey" | gpg --dearmor --yes -o "$key" ||
    fail "the node cannot fetch $home/gpgkey: the toolkit comes from there"
  echo "deb [signed-by=$key] $home/stable/deb/\$(ARCH) /" \
    >/etc/apt/sources.list.d/nvidia-container-toolkit.list
  quietly apt-get update || fail "the node cannot read $home: the toolkit comes from there"
  quietly apt-get install -y --no-install-recommends nvidia-container-toolkit ||
    fail "nvidia-container-toolkit cannot be installed in the node"
fi

# Reservation pods of KAI v0.7 name no RuntimeClass, so NVIDIA's runtime has to be the default.
if ! containerd config dump | grep -q 'default_runtime_name = .nvidia.'; then
  quietly nvidia-ctk runtime configure --runtime=containerd --set-as-default \
    --config-source=command || fail "nvidia-ctk cannot configure containerd in the node"
  systemctl restart containerd || fail "containerd does not start again in the node"
fi
until crictl info >/dev/null 2>&1; do
  wait=$((wait - 1))
  [ "$wait" -gt 0 ] ||
    fail "containerd does not answer in the node: journalctl -u containerd there says why"
  sleep 1
done
echo "the node's containers can use its GPUs" >&2
