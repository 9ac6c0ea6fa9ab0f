"""The steps around a vCluster: waiting until it answers, and ending what it left."""

import json

import pytest

from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError
from kai_fleet.cluster.probes import vcluster, wait
from kai_fleet.cluster.probes.wait import HostFailedError, NotReadyError
from tests.unit.components.cluster import vcluster_secrets

HERE = "/api/v1/namespaces/team-ml"
STATEFUL_SET = "/apis/apps/v1/namespaces/team-ml/statefulsets/ml"
SERVICE = {
    "metadata": {"name": "ml", "namespace": "team-ml"},
    "spec": {"ports": [{"port": 443, "nodePort": 30001}]},
}


class Host:
    """A host with a vCluster whose control plane runs, with or without its Secret.

    `objects` are single ones and lists by their path.
    """

    def __init__(self, secret, ready="True", service=SERVICE, **objects):
        conditions = [{"type": "Ready", "status": ready}]
        pod = {"metadata": {"name": "ml-0"}, "status": {"conditions": conditions}}
        self.objects = {
            f"{HERE}/services/ml": service,
            f"{HERE}/secrets/vc-ml": secret,
            STATEFUL_SET: {"spec": {}},
            f"{HERE}/pods": [pod],
            HERE: {"metadata": {"name": "team-ml"}},
            f"{HERE}/secrets": [{"metadata": {"name": "sh.helm.release.v1.ml.v1"}}],
            **objects,
        }

    def restart_limits(self, seconds):
        """Each round of questions has its time."""

    def find(self, path):
        if isinstance(found := self.objects.get(path), Exception):
            raise found
        return found

    def list(self, path, **query):
        helm = "owner=helm,name=ml,status=deployed"
        known = ("app in (vcluster,vcluster-etcd),release=ml", helm, "pool=ml", "")
        assert query.get("labelSelector", "") in known
        return self.find(path) or []


class Inside:
    uid = "0d9f-11"

    @classmethod
    def of_kubeconfig(cls, text, seconds):
        assert "https://10.0.0.5:30001" in text
        return cls()

    def get(self, path):
        assert path == "/api/v1/namespaces/kube-system"
        return {"metadata": {"uid": self.uid}}


@pytest.fixture
def waits(monkeypatch):
    def run(host, uid="0d9f-11", timeout="0.5", place=KEY):
        monkeypatch.setenv("PROBE_PLACE", place)
        for key, value in {
            "NAME": "ml",
            "NAMESPACE": "team-ml",
            "ACCESS": "NodePort",
            "HOST": "10.0.0.5",
            "NODE_POOL": "pool=ml",
            "TIMEOUT": timeout,
        }.items():
            monkeypatch.setenv(f"VCLUSTER_{key}", value)
        monkeypatch.setattr(vcluster, "cluster", lambda: host)
        monkeypatch.setattr(wait, "Api", Inside)
        monkeypatch.setattr(Inside, "uid", uid)
        vcluster.wait()

    return run


def good():
    return {"data": vcluster_secrets.data()}


def test_it_prints_the_server_and_which_vcluster_it_is(waits, capsys):
    waits(Host(good()))
    out, err = capsys.readouterr()
    assert json.loads(out) == {"server": "https://10.0.0.5:30001", "uid": "0d9f-11"}
    assert "warning: no Ready node has the labels pool=ml" in err


def test_what_the_pod_before_a_restart_answers_is_not_the_end(waits):
    """What follows would meet an API that is starting."""
    done = {"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 1, "replicas": 1}
    plane = {"metadata": {"generation": 2}, "spec": {"replicas": 1}}
    waits(Host(good(), **{STATEFUL_SET: plane | {"status": done}}))
    for old in ({"observedGeneration": 1}, {"availableReplicas": 0}, {"updatedReplicas": 0}):
        with pytest.raises(NotReadyError, match="Missing: statefulset ml, which restarts"):
            waits(Host(good(), **{STATEFUL_SET: plane | {"status": done | old}}), timeout="0.1")


@pytest.mark.parametrize(
    ("image", "printed"),
    [
        ("ghcr.io/loft-sh/kubernetes:v1.36.3", {"kubernetes": "v1.36.3"}),
        ("mirror.example.com:5000/kubernetes:v1.34.4", {"kubernetes": "v1.34.4"}),
        ("mirror.example.com:5000/kubernetes", {}),
        ("ghcr.io/loft-sh/kubernetes@sha256:0d9f", {}),
    ],
)
def test_it_prints_which_kubernetes_came_up(waits, capsys, image, printed):
    containers = [{"name": "vcluster", "image": "x:v1"}, {"name": "kubernetes", "image": image}]
    plane = {"spec": {"template": {"spec": {"initContainers": containers}}}}
    waits(Host(good(), **{STATEFUL_SET: plane}))
    known = {"server": "https://10.0.0.5:30001", "uid": "0d9f-11"}
    assert json.loads(capsys.readouterr().out) == known | printed


@pytest.mark.parametrize("uid", ["", "a b", "x" * 65, {"a": "b"}])
def test_an_identity_that_is_none_is_not_printed(waits, capsys, uid):
    with pytest.raises(NotReadyError):
        waits(Host(good()), uid=uid)
    assert capsys.readouterr().out == ""


def test_a_secret_that_somebody_removed_is_not_waited_for(waits, monkeypatch):
    monkeypatch.setattr(vcluster, "_SECRET_SECONDS", 0.0)
    with pytest.raises(NotReadyError) as ended:
        waits(Host(None), timeout="600")
    assert "kubectl -n team-ml rollout restart statefulset ml" in str(ended.value)


AGAIN = "helm -n team-ml get manifest ml | kubectl -n team-ml apply -f -"


@pytest.mark.parametrize(
    ("lost", "part"), [(f"{HERE}/services/ml", "Service ml"), (STATEFUL_SET, "Control plane ml")]
)
def test_what_somebody_deleted_is_not_waited_for(waits, lost, part):
    with pytest.raises(NotReadyError) as ended:
        waits(Host(good(), **{lost: None, f"{HERE}/secrets": []}), timeout="600")
    lead = f"{part} of namespace team-ml is gone"
    assert str(ended.value) == f"{lead}, as after somebody uninstalled release ml"
    with pytest.raises(NotReadyError) as ended:
        waits(Host(good(), **{lost: None}), timeout="600")
    assert str(ended.value) == f"{lead}, and release ml stands. Make it again with: {AGAIN}"


@pytest.mark.parametrize(
    ("space", "says"),
    [
        (None, "Service ml is gone with namespace team-ml"),
        ({"metadata": {"deletionTimestamp": "x"}}, "because it is being terminated"),
        (RefusedError(403, "Forbidden"), "as after somebody uninstalled release ml"),
    ],
)
def test_what_is_gone_with_its_namespace_says_so(waits, space, says):
    gone = {f"{HERE}/services/ml": None, f"{HERE}/secrets": [], HERE: space}
    with pytest.raises(NotReadyError) as ended:
        waits(Host(good(), **gone), timeout="600")
    assert str(ended.value).endswith(says)


def pending(message="", **more):
    """A control plane's pod that waits, for a scheduler's reason or that of a container."""
    conditions = [{"type": "PodScheduled", "status": "False", "message": message}]
    containers = [{"state": {"waiting": each}} for each in more.pop("containers", [])]
    status = {"phase": "Pending", "conditions": conditions, "containerStatuses": containers}
    metadata = {"name": "ml-0", "namespace": "team-ml"}
    return {"metadata": metadata, "spec": more, "status": status}


def node(labels=None, *taints):
    conditions = [{"type": "Ready", "status": "True"}]
    metadata = {"name": "n", "labels": labels or {}}
    return {"metadata": metadata, "spec": {"taints": taints}, "status": {"conditions": conditions}}


TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
FULL = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. preemption: 0/2."
KEY = "kai-fleet:teams.ml"
BACK_OFF = "back-off 5m0s restarting failed container=syncer pod=ml-0_team-ml(5f0)"


@pytest.mark.parametrize(
    ("pod", "nodes", "words"),
    [
        (
            pending("0/2 nodes", nodeSelector={"pool": "ml"}),
            [node({"pool": "dev"})],
            "no Ready node with the labels pool=ml takes pods: add or label one, or write others at"
            f" {KEY}.nodePool",
        ),
        (
            pending("0/2 nodes", nodeSelector={"pool": "own"}),
            [node({"pool": "ml"})],
            "no Ready node with the labels pool=own takes pods: add or label one, or write others"
            f" at {KEY}.vcluster.nodePool",
        ),
        (
            pending("0/2 nodes"),
            [node({}, TAINT)],
            "each node has a taint that it does not tolerate: write tolerations: [{key:"
            f' "dedicated", value: "ml", effect: "NoSchedule"}}] at {KEY}',
        ),
        (
            pending(FULL, tolerations=[TAINT]),
            [node({}, TAINT), node()],
            "no node has enough cpu and memory left: add one, or ask for less at"
            f" {KEY}.vcluster.resources",
        ),
        (pending("0/2 nodes: odd"), [node()], "0/2 nodes: odd"),
        (pending("0/2 nodes: odd"), RefusedError(403, "Forbidden"), "0/2 nodes: odd"),
        (
            pending(
                containers=[
                    {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "r/v:1"'}
                ]
            ),
            [],
            "image r/v:1 cannot be pulled: see that it is there; write its account at"
            " kai-fleet:registries or the team's own",
        ),
        (
            pending(containers=[{"reason": "CrashLoopBackOff", "message": BACK_OFF}]),
            [],
            "container syncer crashes, look with:"
            " kubectl -n team-ml logs --previous ml-0 -c syncer",
        ),
    ],
)
def test_it_says_why_a_pod_does_not_start_and_the_key(
    waits, capsys, monkeypatch, pod, nodes, words
):
    monkeypatch.setattr(wait, "_FIRST_SECONDS", 0.1)
    with pytest.raises(NotReadyError) as ended:
        waits(Host(None, **{f"{HERE}/pods": [pod], "/api/v1/nodes": nodes}), timeout="1")
    missing = f"Secret vc-ml; pod ml-0: {words}"
    assert f"Missing: {missing}. Look with: kubectl -n team-ml get pods" in str(ended.value)
    assert capsys.readouterr().err.count("waiting for") == 1  # until a minute is over


@pytest.mark.parametrize(
    "denied",
    [
        'pods "ml-0" is forbidden: exceeded quota: small, requested: cpu=1, limited: cpu=0',
        'pods "ml-0" is forbidden: no PriorityClass with name control-planes was found',
    ],
)
def test_it_says_who_refuses_the_pods(waits, monkeypatch, denied):
    monkeypatch.setattr(wait, "_FIRST_SECONDS", 0.0)
    event = {"message": f"create Pod ml-0 in StatefulSet ml failed error: {denied}"}
    with pytest.raises(NotReadyError, match=f"Missing: Secret vc-ml; {denied}. Look"):
        waits(Host(None, **{f"{HERE}/pods": [], f"{HERE}/events": [event, event]}))
    denied = 'admission webhook "labels" denied the request: validation error: no label team'
    event = {"message": f"Error creating: {denied}"}
    with pytest.raises(NotReadyError, match=f"Missing: Secret vc-ml; {denied}. Look"):
        waits(Host(None, **{f"{HERE}/pods": [], f"{HERE}/events": [event]}))


@pytest.mark.parametrize("event", [{}, {"message": None}, {"message": "Error creating: "}])
def test_an_event_without_a_message_says_nothing(waits, monkeypatch, event):
    monkeypatch.setattr(wait, "_FIRST_SECONDS", 0.0)
    with pytest.raises(NotReadyError, match=r"Missing: Secret vc-ml\. Look"):
        waits(Host(None, **{f"{HERE}/pods": [], f"{HERE}/events": [event]}))


@pytest.mark.parametrize(
    ("place", "tolerations", "storage_class"),
    [
        ("kai-fleet:team", "kai-fleet:teamStacks.ml", "kai-fleet:team.vcluster.storageClass"),
        ("VirtualCluster ml", "VirtualCluster ml", "VirtualCluster ml"),
    ],
)
def test_a_teams_own_stack_and_other_programs_read_the_place_that_is_theirs(
    waits, monkeypatch, place, tolerations, storage_class
):
    monkeypatch.setattr(wait, "_FIRST_SECONDS", 0.0)
    objects = {f"{HERE}/pods": [pending("0/1 nodes")], "/api/v1/nodes": [node({}, TAINT)]}
    with pytest.raises(NotReadyError, match=rf"NoSchedule\"}}\] at {tolerations}\. Look"):
        waits(Host(None, **objects), place=place)
    objects[f"{HERE}/pods"] = [pending("unbound", volumes=VOLUMES)]
    with pytest.raises(NotReadyError, match=f"as {storage_class} names it"):
        waits(Host(None, **objects, **{CLAIM: claim("fast")}), place=place)


CLAIM = f"{HERE}/persistentvolumeclaims/data-ml-0"
VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-ml-0"}}, {"name": "tmp"}]


def claim(storage_class):
    metadata = {"name": "data-ml-0", "namespace": "team-ml"}
    status = {"phase": "Pending"}
    return {"metadata": metadata, "spec": {"storageClassName": storage_class}, "status": status}


def test_a_storage_class_that_is_not_there_ends_it_unless_somebody_makes_volumes(
    waits, monkeypatch
):
    monkeypatch.setattr(wait, "_FIRST_SECONDS", 0.0)
    classes = {"/apis/storage.k8s.io/v1/storageclasses": [{"metadata": {"name": "standard"}}]}
    waiting = {f"{HERE}/pods": [pending("unbound", volumes=VOLUMES)], "/api/v1/nodes": [node()]}
    with pytest.raises(NotReadyError) as ended:
        waits(Host(None, **waiting, **classes, **{CLAIM: claim("fast")}), timeout="600")
    assert str(ended.value) == (
        "StorageClass fast, which claim data-ml-0 names, is not there (there are: standard). Make"
        f" it, as {KEY}.vcluster.storageClass names it, and run the update again"
    )
    made = {"/api/v1/persistentvolumes": [{"spec": {"storageClassName": "fast"}}]}
    with pytest.raises(NotReadyError, match="Missing: Secret vc-ml; pod ml-0: unbound"):
        waits(Host(None, **waiting, **classes, **made, **{CLAIM: claim("fast")}))
    with pytest.raises(NotReadyError, match="claim data-ml-0: make a StorageClass the default one"):
        waits(Host(None, **waiting, **classes, **{CLAIM: claim(None)}))


@pytest.mark.parametrize(
    "why", [UnreachableError("no answer"), RefusedError(504, "Gateway Timeout")]
)
def test_a_host_that_does_not_answer_ends_the_wait_for_all_teams(waits, monkeypatch, why):
    monkeypatch.setattr(vcluster, "_HOST_SECONDS", 0.0)
    with pytest.raises(HostFailedError, match="the host's API server failed for 0 s: the API"):
        waits(Host(good(), service=why), timeout="600")


def test_while_the_control_plane_starts_it_waits(waits, monkeypatch):
    monkeypatch.setattr(vcluster, "_SECRET_SECONDS", 0.0)
    with pytest.raises(NotReadyError, match=r"not ready after 0 s\. Missing: Secret vc-ml"):
        waits(Host(None, ready="False"), timeout="0.3")


def test_what_somebody_planted_ends_it_at_once(waits):
    document = vcluster_secrets.config()
    document["users"][0]["user"]["tokenFile"] = "/etc/hostname"
    with pytest.raises(NotReadyError, match="Somebody who can write in the namespace of team ml"):
        waits(Host({"data": vcluster_secrets.data(document)}), timeout="600")


SYNCED = "vcluster.loft.sh/managed-by=ml"
INSTALLED = "app in (vcluster,vcluster-etcd),release=ml"
PIECES = [f"{HERE}/secrets/vc-ml", f"{HERE}/secrets/ml-certs"]
OURS = {"kai-fleet/team": "ml"}


class Namespace:
    """A namespace with a pod and a volume of somebody else beside the vCluster's."""

    def __init__(self, labels):
        self.message, self.labels = [], labels

    def get(self, path):
        assert path == HERE
        if isinstance(self.labels, Exception):
            raise self.labels
        return {"metadata": {"name": "team-ml", "labels": self.labels}}

    def list(self, path, **query):
        kind = path.removeprefix(f"{HERE}/")
        names = {SYNCED: ["synced"]}
        if kind in ("pods", "persistentvolumeclaims"):
            names |= {INSTALLED: ["installed"], "": ["synced", "installed", "theirs"]}
        return [
            {"metadata": {"name": f"{kind}-{item}"}}
            for item in names.get(query["labelSelector"], [])
        ]

    def delete(self, path):
        self.message.append(path)
        return False  # it has gone by itself


def ended(monkeypatch, labels=OURS, api=None):
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setenv("PODS_VCLUSTER", "ml")
    api = api or Namespace(labels)
    monkeypatch.setattr(vcluster, "cluster", lambda: api)
    vcluster.clean_up()
    assert [item for item in api.message if item.endswith(("vc-ml", "-certs"))] == PIECES
    return {item.rpartition("/")[2] for item in api.message if item not in PIECES}


SYNCED_OBJECTS = {"services-synced", "configmaps-synced", "secrets-synced"}
OF_VCLUSTER = SYNCED_OBJECTS | {
    f"{kind}-{of}" for kind in ("pods", "persistentvolumeclaims") for of in ("synced", "installed")
}


def test_every_pod_and_volume_of_a_teams_own_namespace_is_told_to_end(monkeypatch):
    theirs = {"pods-theirs", "persistentvolumeclaims-theirs"}
    assert ended(monkeypatch) == OF_VCLUSTER | theirs


@pytest.mark.parametrize(
    "labels",
    [
        {**OURS, "kai-fleet/namespace": "used"},
        {"kai-fleet/team": "other"},
        {},
        RefusedError(403, "Forbidden"),
    ],
)
def test_in_a_namespace_of_others_their_pods_and_volumes_stay(monkeypatch, labels):
    assert ended(monkeypatch, labels) == OF_VCLUSTER


@pytest.mark.parametrize("why", [RefusedError(403, "Forbidden"), UnreachableError("no")])
def test_what_hinders_it_does_not_hinder_the_removal(monkeypatch, capsys, why):
    api = Namespace(OURS)

    def refused(_, **query):
        raise why

    monkeypatch.setattr(api, "list", refused)
    monkeypatch.setattr(vcluster, "cluster", lambda: api)
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setenv("PODS_VCLUSTER", "ml")
    vcluster.clean_up()
    assert "pods of team-ml are left to Kubernetes" in capsys.readouterr().err
