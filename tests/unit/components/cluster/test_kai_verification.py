"""What a wait for KAI places where `verify` asks for it, and what comes of it."""

import pytest

from kai_fleet.cluster.kube.errors import RefusedError
from kai_fleet.cluster.probes import kai, wait

PODS = "/api/v1/namespaces/default/pods"
GANG = f"{PODS}/kai-fleet-gang-1"
SHARE = f"{PODS}/kai-fleet-share"
GROUP = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups/kai-fleet-gang"
SHORT = "Resources were found for 0 pods while 2 are required for gang scheduling. "
NO_ROOM = f"{SHORT}node(s) didn't have enough resources: CPU cores"
FULL = "LeafQueue quota has reached the allowable limit of GPUs. Limit is 1 GPUs"
TAINT = f"{SHORT}1 node(s) had untolerated taint(s)"


def queue(name, parent=None):
    return {"metadata": {"name": name}, "spec": {"parentQueue": parent} if parent else {}}


class Cluster:
    """A cluster with a KAI that is Ready, two queues, and a node with one GPU.

    `messages` are what KAI says of a pod that it leaves without a node, by path.
    """

    def __init__(self):
        self.queues = [queue("top"), queue("train", "top")]
        self.node = {
            "metadata": {"name": "n"},
            "spec": {},
            "status": {
                "allocatable": {"nvidia.com/gpu": "1"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        self.pods = []
        self.messages = {}
        self.objects = {}
        self.placed = {}
        self.asked = []

    def restart_limits(self, seconds):
        """Each round of questions has its time."""

    def list(self, path, **query):
        self.asked.append(path)
        kai_pod = {
            "tolerations": [{"key": "team", "value": "ml"}],
            "containers": [{"image": "k:1"}],
        }
        found = {
            "/apis/scheduling.run.ai/v2/queues": self.queues,
            "/api/v1/nodes": [self.node],
            "/api/v1/pods": self.pods,
            "/api/v1/namespaces/kai-scheduler/pods": [{"spec": kai_pod}],
        }
        return found[path.partition("?")[0]]

    def patch(self, path, body, kind, **query):
        assert path not in self.objects, "what a killed run left is deleted first"
        self.placed[path] = self.objects[path] = body

    def get(self, path):
        body = self.objects[path]
        spec = dict(body["spec"])
        status = {}
        if path in self.messages:
            unscheduled = {
                "type": "PodScheduled",
                "status": "False",
                "message": self.messages[path],
            }
            status = {"conditions": [unscheduled]}
        elif body["kind"] == "Pod":
            spec["nodeName"] = "n"
        return {
            **body,
            "metadata": {"name": path.rpartition("/")[2]},
            "spec": spec,
            "status": status,
        }

    def delete(self, path):
        return self.objects.pop(path, None) is not None


@pytest.fixture
def cluster(monkeypatch):
    def briefly(api, what, missing, seconds, *rest):
        wait.until_ready(api, what, missing, 0.1, *rest)

    cluster = Cluster()
    monkeypatch.setattr(kai, "cluster", lambda: cluster)
    monkeypatch.setattr(kai, "until_ready", briefly)
    monkeypatch.setattr(kai, "_missing", lambda *_: [])
    monkeypatch.setenv("PROBE_SECRET", "team-ml/vc-ml")
    monkeypatch.setenv("PROBE_PLACE", "kai-fleet:teams.ml")
    monkeypatch.setenv("KAI_VERSION", "v0.16.9")
    monkeypatch.setenv("KAI_TIMEOUT", "600")
    monkeypatch.setenv("KAI_VERIFY", "share")
    return cluster


def test_a_gang_and_a_share_are_placed_and_nothing_is_left(cluster, capsys):
    kai.wait()
    assert [*cluster.placed] == [GROUP, GANG, f"{PODS}/kai-fleet-gang-2", SHARE]
    assert cluster.objects == {}
    for path, body in cluster.placed.items():
        assert body["metadata"]["name"] == path.rpartition("/")[2]
    assert cluster.placed[GROUP]["spec"] == {"minMember": 2, "queue": "train"}
    for path in (GANG, SHARE):
        pod = cluster.placed[path]
        assert pod["metadata"]["labels"] == {"kai.scheduler/queue": "train"}
        assert pod["spec"]["schedulerName"] == "kai-scheduler"
        assert pod["spec"]["tolerations"] == [{"key": "team", "value": "ml"}]
        assert pod["spec"]["containers"][0]["image"] == "k:1"
    assert cluster.placed[GANG]["metadata"]["annotations"] == {"pod-group-name": "kai-fleet-gang"}
    assert cluster.placed[SHARE]["metadata"]["annotations"] == {"gpu-fraction": "0.01"}
    assert "KAI v0.16.9 with a gang of pods is ready" in capsys.readouterr().err


def test_only_where_it_is_asked_for(cluster, monkeypatch):
    monkeypatch.delenv("KAI_VERIFY")
    kai.wait()
    assert cluster.asked == []


def test_nothing_is_placed_before_there_are_queues(cluster):
    cluster.queues = []
    kai.wait()
    assert cluster.placed == {}
    assert "labelSelector=!kai.scheduler/node-pool,kai-fleet/tree" in cluster.asked[1]


@pytest.mark.parametrize("path", [GANG, SHARE])
@pytest.mark.parametrize(
    ("message", "reason"),
    [("", "KAI says nothing about it"), (TAINT, TAINT), (SHORT, SHORT.strip())],
    ids=["nothing said", "a taint", "no gang"],
)
def test_a_pod_that_kai_does_not_place_fails_the_wait(cluster, path, message, reason):
    cluster.messages[path] = message
    with pytest.raises(wait.NotReadyError) as ended:
        kai.wait()
    said = str(ended.value)
    assert said.startswith("KAI v0.16.9 with a gang of pods is not ready after")
    assert f"Missing: a node for pod {path.rpartition('/')[2]}: {reason}" in said
    assert (
        "write the version before at kai-fleet:teams.ml.scheduler.version, or verify: false beside"
        " it" in said
    )
    assert cluster.objects == {}, "the pods are removed all the same"


def test_the_key_of_the_hosts_kai_is_named(cluster, monkeypatch):
    monkeypatch.setenv("PROBE_SECRET", "")
    cluster.messages[GANG] = ""
    with pytest.raises(wait.NotReadyError, match=r"at kai-fleet:kai\.version, or verify: false"):
        kai.wait()


@pytest.mark.parametrize(("path", "message"), [(GANG, NO_ROOM), (SHARE, FULL)])
def test_a_pod_without_room_is_a_warning(cluster, capsys, path, message):
    cluster.messages[path] = message
    kai.wait()
    name = path.rpartition("/")[2]
    said = capsys.readouterr().err
    assert f"warning: no room for pod {name}, and none is waited for: {message}" in said
    assert cluster.objects == {}


def test_what_a_killed_run_left_goes_first(cluster):
    cluster.objects = {GANG: {"left": True}, GROUP: {"left": True}}
    kai.wait()
    assert cluster.placed[GANG]["kind"] == "Pod"
    assert cluster.objects == {}


def holder(**spec):
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "metadata": {"name": "p", "namespace": "a"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": resources}], **spec},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize("why", ["taken", "cordoned", "not ready", "sharing off"])
def test_no_share_is_placed_where_a_pod_could_be_evicted_for_it(cluster, monkeypatch, capsys, why):
    if why == "taken":
        cluster.pods = [holder()]
    elif why == "cordoned":
        cluster.node["spec"] = {"unschedulable": True}
    elif why == "not ready":
        cluster.node["status"]["conditions"] = []
    else:
        monkeypatch.setenv("KAI_VERIFY", "gang")
    kai.wait()
    assert SHARE not in cluster.placed
    assert GANG in cluster.placed
    assert "no share of a GPU is verified: GPU sharing is off, or no GPU is free" in (
        capsys.readouterr().err
    )


def test_a_refused_pod_is_told_and_what_was_made_goes(cluster, monkeypatch):
    place = Cluster.patch

    def refuse(self, path, body, kind, **query):
        if path == SHARE:
            raise RefusedError(403, "Forbidden", b'{"message": "denied"}')
        place(self, path, body, kind, **query)

    monkeypatch.setattr(Cluster, "patch", refuse)
    with pytest.raises(RefusedError):
        kai.wait()
    assert cluster.objects == {}
