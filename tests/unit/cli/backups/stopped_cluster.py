"""A host with one vCluster, as far as a restore meets it: a claim, a StatefulSet, their guard."""

import hashlib

from kai_fleet.cluster.kube.errors import AbsentError, RefusedError

NAMESPACE = "/api/v1/namespaces/team-ml"
CLAIM = f"{NAMESPACE}/persistentvolumeclaims/data-ml-0"
HOLD = f"{NAMESPACE}/serviceaccounts/ml-restore"
POD = f"{NAMESPACE}/pods/ml-0"
FILLER = f"{NAMESPACE}/pods/ml-restore-abcde"
JOBS = "/apis/batch/v1/namespaces/team-ml/jobs"
GUARD = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/kai-fleet-volumes"
APPS = "/apis/apps/v1/namespaces/team-ml"
WORKLOAD = f"{APPS}/statefulsets/ml"
DEPLOYMENT = f"{APPS}/deployments/ml"
REPLICA_SETS = f"{APPS}/replicasets"
CONTROLLER = {"uid": "u1", "controller": True}
JOB = {
    "metadata": {
        "name": "train-0-x-default-x-ml",
        "annotations": {
            "vcluster.loft.sh/object-namespace": "default",
            "vcluster.loft.sh/object-name": "train-0",
            "vcluster.loft.sh/object-uid": "aaaaaaaa-2222-3333-4444-555555555555",
        },
    },
    "status": {"phase": "Running"},
}


def stateful_set(name="ml", replicas=1):
    container = {"name": "syncer", "image": "vcluster", "livenessProbe": {}, "volumeMounts": []}
    sidecar = {"name": "sidecar", "image": "other"}
    return {
        "kind": "StatefulSet",
        "metadata": {"name": name, "uid": "u1", "annotations": {}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "vcluster", "release": "ml"}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"size": "5Gi"}}],
            "template": {"spec": {"containers": [sidecar, container], "volumes": []}},
        },
    }


def owned(name, uid, controller):
    """An object that the one with this UID makes."""
    owner = {"uid": controller, "controller": True}
    return {"metadata": {"name": name, "uid": uid, "ownerReferences": [owner]}}


class KilledError(Exception):
    """The command was killed before a write."""


class Host:
    """The API server, its controllers, and kubectl. `starts` has the store of each start."""

    def __init__(self, guarded=True):
        self.objects = {NAMESPACE: {}, WORKLOAD: stateful_set(), f"{NAMESPACE}/pods/job": JOB}
        self.guarded = guarded
        if guarded:
            rule = "!('kai-fleet/restoring' in variables.noted)"
            self.objects[GUARD] = {"spec": {"validations": [{"expression": rule}]}}
        self.store = ""
        self.starts = []
        self.sent = b""
        self.patched = []
        self.written = {}
        self.cuts = 0
        self.says = "Successfully restored 5 etcd keys from snapshot"
        self.ends = "Succeeded"
        self.writes_left = 1000
        self.read = []
        self.members = None  # what the stack's file has now, where that is another number
        self.api = self

    def run_without_volume(self):
        """Have a Deployment in place of the StatefulSet, with ReplicaSets and a tenant's pod."""
        workload = stateful_set() | {"kind": "Deployment"}
        workload["spec"].pop("volumeClaimTemplates")
        del self.objects[WORKLOAD]
        self.objects[DEPLOYMENT] = workload
        for name, uid, controller in (
            ("ml-old", "r1", "u1"),
            ("ml-new", "r2", "u1"),
            ("other", "r3", "u9"),
        ):
            self.objects[f"{REPLICA_SETS}/{name}"] = owned(name, uid, controller)
        for name, controller in (("ml-a", "r1"), ("ml-b", "r2"), ("others", "r3"), ("own", "t1")):
            self.objects[f"{NAMESPACE}/pods/{name}"] = owned(name, f"p-{name}", controller)

    def install(self):
        """What the engine does before the store is filled: a larger etcd, whose new members begin
        with volumes of their own.
        """
        if self.members is None:
            return
        self.objects[f"{WORKLOAD}-etcd"]["spec"]["replicas"] = self.members
        self._control()

    def _write(self):
        self.writes_left -= 1
        if self.writes_left < 0:
            raise KilledError

    def _control(self):
        """What the StatefulSets' controller does."""
        for number in range(1, self.members or 0):  # the guard does not know of these claims
            name = f"data-ml-etcd-{number}"
            claim = {"metadata": {"name": name}, "spec": {"size": "5Gi"}}
            self.objects.setdefault(f"{NAMESPACE}/persistentvolumeclaims/{name}", claim)
        held = self.guarded and HOLD in self.objects
        has_store = CLAIM in self.objects or f"{WORKLOAD}-etcd" in self.objects
        if has_store and POD not in self.objects and not held:
            ready = {"type": "Ready", "status": "True"}
            metadata = {"name": "ml-0", "ownerReferences": [CONTROLLER]}
            self.objects[POD] = {"metadata": metadata, "status": {"conditions": [ready]}}
            self.objects[f"{NAMESPACE}/secrets/vc-ml"] = {"metadata": self.written}
            self.starts.append(self.store)

    def find(self, path):
        self.read.append(path)
        return self.objects.get(path)

    def get(self, path):
        if path not in self.objects:
            raise AbsentError(404, "Not Found")
        return self.objects[path]

    def list(self, path, **query):
        self.read.append(path)
        below = [found for found in self.objects if found.rpartition("/")[0] == path]
        of_job = query == {"labelSelector": "job-name=ml-restore"}
        return [
            self.objects[found] for found in below if not of_job or found.startswith(FILLER[:-6])
        ]

    def post(self, path, body):
        self._write()
        place = f"{path}/{body['metadata']['name']}"
        if place in self.objects:
            raise RefusedError(409, "Conflict")
        self.objects[place] = body
        if place == CLAIM:
            self.store = "empty"
        if path == JOBS:
            pod = body["spec"]["template"]
            pod["metadata"]["name"] = "ml-restore-abcde"
            self.objects[FILLER] = {**pod, "status": {"phase": "Running"}}
        self._control()

    def patch(self, path, body):
        self._write()
        found = self.get(path)
        if "data" in body:
            found["data"] = body["data"]
        self.patched.append(path)
        metadata = dict(body.get("metadata", {}))
        annotations = found["metadata"].setdefault("annotations", {})
        annotations |= metadata.pop("annotations", {})
        found["metadata"] |= metadata
        found["metadata"]["annotations"] = {
            key: value for key, value in annotations.items() if value is not None
        }
        self._control()

    def changes_of(self, path):
        return self.patched.count(path)

    def delete(self, path):
        self._write()
        self.objects.pop(path, None)
        self._control()

    def run(self, verb, *words, sent=b""):
        if verb == "logs":
            return self.says.encode()
        self._write()
        if sent:
            self.sent = sent[: len(sent) - self.cuts]
            return hashlib.sha256(self.sent).hexdigest().encode() + b"  file\n"
        self.objects[FILLER]["status"] = {"phase": self.ends}
        if self.ends == "Succeeded":
            self.store = "restored"
        return b""
