"""What the host has already: used, named where it does not fit, and kept once it was made."""

from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from kai_fleet.cluster.connection import ClusterConnection
from kai_fleet.names import NAMESPACE, NAMESPACE_PATCH
from kai_fleet.ownership.deployed import Deployed
from kai_fleet.queues.specs import named_specs
from kai_fleet_stack import existing
from kai_fleet_stack.closed_pool import closed_pool
from kai_fleet_stack.existing import HostObjects, is_of_others
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import Facts, load_team_stack
from tests.unit.stack.stack_arguments import settings_of

CLASS = "/apis/node.k8s.io/v1/runtimeclasses/nvidia"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpolicies.nvidia.com"
SPACE = "/api/v1/namespaces/"
THERE = {"there": True, "handler": "", "labels": {}}
KAI_CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}


def state(*resources: tuple[str, str]) -> Deployed:
    return Deployed(urns=frozenset(f"urn:pulumi:s::p::{kind}::{name}" for kind, name in resources))


def there(*paths: str, deployed: Deployed | None = None, **more: Any) -> HostObjects:
    answers: dict[str, Any] = dict.fromkeys(paths, THERE | more)
    return HostObjects(lambda path: answers.get(path, {}), deployed or Deployed())


def gpu(provider: str, host: HostObjects) -> list[str]:
    return existing.gpu_stack({"provider": provider}, host)


def kai(host: HostObjects, queues: Any = None, **args: Any) -> list[str]:
    return existing.host_kai({"version": "v0.16.8", **args}, {"queues": queues or {}}, host)


def test_what_fits_is_used_and_what_is_the_stacks_own_is_declared():
    both = (CLASS, f"{SPACE}nvidia-device-plugin")
    assert gpu("device-plugin", there(*both, handler="nvidia")) == ["runtimeClass", "namespace"]
    own = state((existing.RUNTIME_CLASS, "host-gpu-runtime-class"))
    assert gpu("device-plugin", there(CLASS, handler="nvidia", deployed=own)) == []


def test_a_class_with_another_handler_is_named_with_what_to_write():
    with pytest.raises(pulumi.RunError, match=r"handler nvidia-cdi.*Write provider: none"):
        gpu("device-plugin", there(CLASS, handler="nvidia-cdi"))
    assert gpu("operator", there(CLASS, handler="nvidia-cdi")) == []


def test_a_second_operator_is_not_installed():
    policy = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy"
    with pytest.raises(pulumi.RunError, match="Write provider: none"):
        gpu("operator", there(policy))
    own = state(("kubernetes:helm.sh/v3:Release", "host-gpu-release"))
    assert gpu("operator", there(policy, deployed=own)) == []


def test_the_namespace_of_kai_and_the_crd_of_an_operator_are_used():
    assert kai(there(f"{SPACE}kai-scheduler")) == ["namespace"]
    own = state((NAMESPACE, "host-kai-namespace"))
    assert kai(there(f"{SPACE}kai-scheduler", deployed=own)) == []
    assert kai(there(CRD), version="v0.9.20") == ["clusterPolicyCrd"]
    assert kai(there(CRD), version="v0.9.20", use_existing=["clusterPolicyCrd"]) == []
    own = state((existing.CRD, "host-kai-cluster-policy"))
    assert kai(there(CRD, deployed=own), version="v0.9.20") == []


def with_classes(release: str = "", owners: Any = None, **values: Any) -> HostObjects:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses/"
    owners = owners or {}
    answers: dict[str, Any] = {
        f"{path}{name}": THERE | {"value": value, "release": owners.get(name, release)}
        for name, value in (KAI_CLASSES | values).items()
        if value is not None
    }
    return HostObjects(lambda asked: answers.get(asked, {}), Deployed())


def test_priority_classes_of_others_that_fit_are_used():
    assert kai(with_classes()) == ["priorityClasses"]
    assert kai(with_classes(release="kai-scheduler/kai-scheduler")) == []
    off = {"defaultPriorityClasses": {"enabled": False}}
    assert kai(with_classes(train=7), values=off) == []


OURS = "kai-scheduler/kai-scheduler"


@pytest.mark.parametrize("version", ["v0.14.7", "v0.16.8"])
@pytest.mark.parametrize("owner", ["", "other/kai"])
@pytest.mark.parametrize("changed", [{}, {"build": None}, {"train": 9}])
def test_priority_classes_of_our_release_stay_in_it_beside_those_of_others(version, owner, changed):
    """The chart makes all or none: without it Helm would delete ours."""
    host = with_classes(release=OURS, owners={"train": owner}, **changed)
    assert kai(host, version=version) == []


@pytest.mark.parametrize(
    ("changed", "version", "has"),
    [
        ({"train": 9, "inference": None}, "v0.18.0", "build 100, inference absent"),
        ({}, "v0.14.7", "train 50, build-preemptible 75, build 100, inference 125"),
    ],
)
def test_priority_classes_of_others_that_do_not_fit_are_named(changed, version, has):
    with pytest.raises(pulumi.RunError) as caught:
        kai(with_classes(**changed), version=version)
    message = str(caught.value)
    assert f"{has}. Nothing was made. KAI v0.16.7 or newer uses them if they are train" in message
    assert "with values: {defaultPriorityClasses: {enabled: false}}" in message


@pytest.mark.parametrize(
    ("quota", "labels", "refused"),
    [(-1, {}, True), (4, {}, False), (-1, {"kai-fleet/tree": "lab/host-queues"}, False)],
)
def test_default_queues_of_a_kai_that_was_there_are_compared_first(quota, labels, refused):
    queues = {"default-queue": {"gpu": {"quota": 4}}}
    ((_, spec),) = named_specs({"default-queue": {"gpu": {"quota": quota}}})
    host = there("/apis/scheduling.run.ai/v2/queues/default-queue", spec=spec, labels=labels)
    if not refused:
        assert kai(host, queues) == []
        return
    with pytest.raises(pulumi.RunError, match="kai-fleet:queues: queue default-queue is in the"):
        kai(host, queues)


POOL = {"kai-fleet/pool": "ml"}


@pytest.mark.parametrize(
    ("tolerations", "taints", "warned"),
    [
        ([], [["dedicated"], []], False),
        ([], [["node.kubernetes.io/not-ready"]], False),
        ([{"key": "dedicated"}], [["dedicated"]], False),
        ([{"key": "dedicated", "value": "other"}], [["dedicated"], ["dedicated"]], True),
    ],
)
def test_a_preview_warns_of_a_pool_whose_taints_are_not_tolerated(
    tolerations, taints, warned, monkeypatch
):
    nodes = [
        {
            "labels": POOL | {"other": "x"},
            "taints": [{"key": key, "value": "ml", "effect": "NoSchedule"} for key in keys],
        }
        for keys in taints
    ]
    nodes.append({"labels": {}, "taints": []})
    messages: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", messages.append)
    args = {"node_pool": POOL, "tolerations": tolerations}
    host = there("/api/v1/nodes", nodes=nodes)
    existing.warn_of_taints("ml", args, "kai-fleet:teams.ml", host)
    assert bool(messages) == warned
    for line in messages:
        assert "each of its 2 nodes has a taint (dedicated)" in line
        assert "write tolerations: [" in line
        assert '{key: "dedicated", value: "ml", effect: "NoSchedule"}] at kai-fleet:teams' in line


def test_a_fix_keeps_the_tolerations_that_are_written():
    taint = {"key": "b", "effect": "NoSchedule"}
    _, fix = closed_pool({"tolerations": [{"key": "a"}]}, [[taint]], "kai-fleet:teams.ml")
    assert '[{key: "a", operator: "Exists"}, {key: "b", effect: "NoSchedule"}] at' in fix


@pytest.mark.parametrize(("count", "warned"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_preview_warns_of_few_nodes_for_high_availability(count, warned, monkeypatch):
    nodes = [{"labels": POOL, "taints": []}] * count + [{"labels": {}, "taints": []}] * 3
    messages: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", messages.append)
    host = there("/api/v1/nodes", nodes=nodes)
    existing.warn_of_few_nodes("ml", POOL, "kai-fleet:teams.ml", host)
    assert bool(messages) == warned
    for line in messages:
        assert f"has {count} of 3 nodes" in line
        assert "write others at kai-fleet:teams.ml.vcluster.nodePool" in line


@pytest.mark.parametrize(
    ("labels", "deployed", "used"),
    [
        ({}, (), True),
        # Used from then on, also where it has the stack's own labels by now.
        ({"kai-fleet/team": "ml"}, [(NAMESPACE_PATCH, "ml-namespace")], True),
        ({"kai-fleet/team": "ml"}, [(NAMESPACE, "ml-namespace")], False),
        # Of an update that was cut off.
        ({"kai-fleet/team": "ml"}, (), False),
        ({"kai-fleet/team": "ml", "kai-fleet/namespace": "used"}, (), True),
    ],
)
def test_a_namespace_made_beforehand_is_that_of_others(labels, deployed, used):
    host = there(f"{SPACE}team-ml", labels=labels, deployed=state(*deployed))
    assert is_of_others("ml", {}, host) == used
    assert not is_of_others("ml", {}, there())


def test_labels_that_do_not_fit_are_named():
    labels = {"pod-security.kubernetes.io/enforce": "privileged", "cost-centre": "7"}
    host = there(f"{SPACE}team-ml", labels=labels)
    label = "label namespace team-ml --overwrite pod-security.kubernetes.io/enforce=baseline"
    with pytest.raises(pulumi.RunError, match=label):
        is_of_others("ml", {}, host)
    with pytest.raises(pulumi.RunError, match="it has cost-centre=7"):
        is_of_others("ml", {"labels": {"cost-centre": "8"}}, host)


def test_what_a_user_may_not_look_at_is_named_once(monkeypatch):
    paths: list[str] = []
    messages: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", messages.append)

    def read(path: str) -> dict[str, Any]:
        paths.append(path)
        return {"problem": "the API answers 403 Forbidden", "away": False, "denied": True}

    assert gpu("device-plugin", HostObjects(read, Deployed())) == []
    assert paths == [CLASS, f"{SPACE}nvidia-device-plugin"]
    assert messages == [
        "what the host cluster has already is not known: the API answers 403 Forbidden to GET"
        f" {CLASS}. What others made there looks free in this run, and an update may fail. Look"
        " with: kubectl auth can-i --list"
    ]


@pytest.mark.parametrize(
    ("problem", "away", "asked"),
    [
        ("the API answers 429 Too Many Requests", False, 1),
        ("the API answers 500 Internal Server Error", False, 1),
        ("the API does not answer: it does not answer in time", True, 2),
    ],
)
def test_what_the_cluster_does_not_say_is_not_absent(problem, away, asked):
    """Guards that were not read made a second stack the first of its cluster."""
    paths: list[str] = []

    def read(path: str) -> dict[str, Any]:
        paths.append(path)
        return {"problem": problem, "away": away, "denied": False}

    settings = settings_of({"cluster": {"name": "lab", "context": "lab"}})
    with pytest.raises(pulumi.RunError, match=f"{problem} to GET"):
        existing.existing_of(settings, HostObjects(read, Deployed()))
    assert len(paths) == asked


WRONG = "the kubeconfig cannot be used: it has no context lba; its contexts: lab, prod"
PLATFORM = {"cluster": {"name": "lab", "context": "lab"}, "teamStacks": {"nlp": {"gpus": 2}}}
TEAM_STACK = {
    "platform": {"stack": "lab"},
    "team": {"name": "nlp", "scheduler": {"mode": "default"}},
}


def found_by(raw, answer, monkeypatch):
    """What `find` gives for a stack whose host gives this answer, and the paths that it asks."""
    asked: list[str] = []

    def invoke(token, arguments, options):
        asked.append(arguments["path"])
        return SimpleNamespace(value=answer)

    return found_with(raw, invoke, monkeypatch), asked


def found_with(raw, invoke, monkeypatch):
    """What `find` gives for a stack whose engine answers so."""
    monkeypatch.setattr(existing, "invoke", invoke)
    platform = load(PLATFORM).settings
    own = load_team_stack(raw, lambda _: Facts.of(platform)) if "team" in raw else load(raw)
    assert own.settings is not None, own.mistakes
    connection = ClusterConnection(context="lab")
    return existing.find(own.settings, connection, Deployed(), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("raw", [PLATFORM, TEAM_STACK], ids=["platform", "team stack"])
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"problem": WRONG, "away": True}, "its contexts: lab, prod"),
        ({"problem": "the API answers 401 Unauthorized", "away": False}, "401 Unauthorized"),
        ({"problem": "the API answers 403 Forbidden", "away": False}, "403 Forbidden"),
        ({"problem": "the API does not answer: x", "away": True}, "does not answer"),
    ],
)
def test_without_the_host_there_is_no_preview(raw, answer, says, monkeypatch):
    with pytest.raises(pulumi.RunError, match="Nothing was made") as ended:
        found_by(raw, answer, monkeypatch)
    assert says in str(ended.value) and ".venv/bin/fleet plan" in str(ended.value)


def test_a_host_that_answers_or_is_made_yet_is_enough(monkeypatch):
    nothing, asked = found_by(TEAM_STACK, {"there": False}, monkeypatch)
    assert (nothing, asked) == ({}, ["/api", "/version"])
    assert found_by(PLATFORM, {"there": False}, monkeypatch)[0]["teams"] == []
    new = {"cluster": {"name": "here", "kind": {}}}
    assert found_by(new, {"problem": WRONG, "away": True}, monkeypatch) == ({}, [])
    # The offline plan's engine answers nothing.
    assert found_by(PLATFORM, None, monkeypatch)[0]["gpu"] == []


OLD = {"version": "v0.34.7", "kubernetesVersion": "v1.33.4"}


@pytest.mark.parametrize("raw", [PLATFORM, TEAM_STACK], ids=["platform", "team stack"])
@pytest.mark.parametrize(("version", "refused"), [("v1.34.0-eks-1", True), ("v1.33.9", False)])
def test_an_old_kubernetes_is_refused_on_a_newer_host(raw, version, refused, monkeypatch):
    """Only the host knows its version: no plan refuses it."""

    def invoke(token, arguments, options):
        about = {"version": version} if arguments["path"] == "/version" else {}
        return SimpleNamespace(value={"there": arguments["path"] in ("/api", "/version"), **about})

    if "team" in raw:
        raw = {**raw, "team": {**raw["team"], "vcluster": OLD}}
    else:
        team = {"nodePool": {"pool": "a"}, "vcluster": OLD, "scheduler": {"mode": "default"}}
        raw = {**raw, "teams": {"ml": team}}
    if not refused:
        found_with(raw, invoke, monkeypatch)
        return
    with pytest.raises(pulumi.RunError, match="stay NotReady with vCluster") as ended:
        found_with(raw, invoke, monkeypatch)
    assert "write v0.35.3" in str(ended.value)


@pytest.mark.parametrize("raw", [PLATFORM, TEAM_STACK], ids=["platform", "team stack"])
def test_an_account_that_may_get_no_object_has_a_preview_too(raw, monkeypatch, caplog):
    """Each account that has logged in may ask which versions the API has."""
    denied = {"problem": "the API answers 403 Forbidden", "away": False, "denied": True}

    def invoke(token, arguments, options):
        return SimpleNamespace(value={"there": True} if arguments["path"] == "/api" else denied)

    assert not any(found_with(raw, invoke, monkeypatch).values())


def test_a_connection_that_breaks_once_does_not_make_what_is_there_look_free():
    answers = iter([{"problem": "reset", "away": True}, {"there": True, "handler": "other"}])
    with pytest.raises(pulumi.RunError, match="handler other"):
        gpu("device-plugin", HostObjects(lambda path: next(answers), Deployed()))


def test_the_cluster_of_another_stack_is_refused():
    guard = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/kai-fleet-pods"
    settings = settings_of({"cluster": {"name": "lab", "context": "lab"}})
    with pytest.raises(pulumi.RunError, match="another stack has this cluster"):
        begun = state(("pulumi:pulumi:Stack", "kai-fleet-lab"))  # an update that just begins
        existing.existing_of(settings, there(guard, deployed=begun))
    own = state(("kai-fleet:index:HostGuards", "host-guards"))
    assert existing.existing_of(settings, there(guard, deployed=own))["teams"] == []


def test_of_a_stack_it_is_what_its_components_use():
    settings = settings_of(
        {
            "cluster": {"name": "lab", "context": "lab"},
            "gpu": {"provider": "device-plugin"},
            "kai": {"version": "v0.16.8"},
            "queues": {"top": {}},
            "teamStacks": {"vision": {"parentQueue": "top"}},
        }
    )
    spaces = [f"{SPACE}{name}" for name in ("kai-scheduler", "team-vision")]
    assert existing.existing_of(settings, there(*spaces, CLASS, handler="nvidia")) == {
        "gpu": ["runtimeClass"],
        "kai": ["namespace"],
        "teams": ["vision"],
    }
    connection, package = ClusterConnection(context="lab"), None
    with pytest.raises(pulumi.RunError, match="state cannot be read"):
        existing.find(settings, connection, Deployed(readable=False), package)  # type: ignore[arg-type]
