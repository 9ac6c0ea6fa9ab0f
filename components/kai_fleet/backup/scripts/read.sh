#!/bin/sh
# Reads the vCluster $NAME in namespace $NAMESPACE into the folder $BACKUP, which is empty:
#   snapshot.tar.gz  its store, as vCluster's own `snapshot` writes it: the keys are the names of members
#   certs.json       the data of Secret NAME-certs: without it, kubeconfigs that people have are dead
#   config.yaml      the values of the release, of Secret vc-config-NAME
#   backup.json      what it is, and when it was taken
# $VERSION is that of the vCluster, and $MESSAGE the file for a sentence that says why it failed.
set -eu
umask 077
file=/tmp/kai-fleet-backup.tar.gz # in the control plane, where /tmp is an emptyDir
members=$(mktemp)

fail() {
  printf '%s\n' "$1" | tee "$MESSAGE" >&2
  exit 1
}

# A command in the control plane. Its program is vCluster's own, and it has a shell.
inside() {
  kubectl -n "$NAMESPACE" exec "$pod" -c syncer -- sh -c "$1"
}

secret() {
  kubectl -n "$NAMESPACE" get secret "$1" -o "jsonpath=$2" ||
    fail "Secret $1 of namespace $NAMESPACE cannot be read; update the stack, which declares the rights to read it"
}

pods=$(kubectl -n "$NAMESPACE" get pods -l "app=vcluster,release=$NAME" -o 'jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}') ||
  fail "pods of namespace $NAMESPACE cannot be listed; update the stack, which declares the rights to list them"
# A tenant's pod may have these labels, but no such name: those of synced pods have -x- in them.
pod=$(printf '%s\n' "$pods" | grep -E "^$NAME-([0-9]+|[a-z0-9]{5,10}-[a-z0-9]{5}) True\$" | head -n 1 | cut -d ' ' -f 1)
[ -n "$pod" ] ||
  fail "no pod of vCluster $NAME in namespace $NAMESPACE is ready; see why with: fleet doctor"

taken=$(date -u +%Y-%m-%dT%H:%M:%SZ)
options=$(printf '{"type":"container","container":{"path":"%s"}}' "$file" | base64 | tr -d '\n')
trap 'rm -f "$members"; inside "rm -f $file" >/dev/null 2>&1 || true' EXIT
# A store that does not answer is asked without an end.
inside "VCLUSTER_STORAGE_OPTIONS=$options timeout 300 /vcluster snapshot" >&2 ||
  fail "vCluster $NAME wrote no snapshot of its store; its last lines are in the log of container read"
sum=$(inside "sha256sum $file" | cut -d ' ' -f 1)
printf '%s' "$sum" | grep -qxE '[0-9a-f]{64}' || fail "the snapshot in pod $pod cannot be read; the next run takes another one"

# What `kubectl exec` carries may be cut without an error (seen with kubectl 1.36 and containerd 1.6).
mkdir -p "$BACKUP"
cd "$BACKUP"
for attempt in 1 2 3; do
  inside "cat $file" >snapshot.tar.gz || true
  copied=$(sha256sum snapshot.tar.gz | cut -d ' ' -f 1)
  [ "$copied" != "$sum" ] || break
done
[ "$copied" = "$sum" ] ||
  fail "the snapshot of $pod came with another checksum in each of 3 tries ($copied, there $sum); nothing was kept, and the next run tries again"

tar tzf snapshot.tar.gz >"$members" 2>/dev/null ||
  fail "the snapshot of $pod is no archive; nothing was kept, and the next run takes another one"
keys=$(wc -l <"$members" | tr -d ' ')
system=$(grep -x '/*registry/namespaces/kube-system' "$members" || true)
# The first UID of an object is its own, also in Kubernetes' binary form.
cluster=$(tar xzOf snapshot.tar.gz "${system:-none}" 2>/dev/null | grep -aoE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | head -n 1) || true
[ -n "$cluster" ] ||
  fail "the snapshot of $pod has no namespace kube-system among its $keys keys; see whether vCluster $NAME works: fleet doctor"

secret "$NAME-certs" '{.data}' >certs.json
secret "vc-config-$NAME" '{.data.config\.yaml}' | base64 -d >config.yaml
[ -s certs.json ] && [ -s config.yaml ] ||
  fail "Secret $NAME-certs or vc-config-$NAME of namespace $NAMESPACE is empty; see whether vCluster $NAME works: fleet doctor"
printf '{"team": "%s", "namespace": "%s", "taken": "%s", "vcluster": "%s", "cluster": "%s", "keys": %s, "sha256": "%s"}\n' \
  "$NAME" "$NAMESPACE" "$taken" "$VERSION" "$cluster" "$keys" "$sum" >backup.json
cat backup.json
