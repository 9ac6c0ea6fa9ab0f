"""What an edit lets a team do that it could not: of every key, from the settings as a whole."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from kai_fleet_cli.diff.grants import granted_lines, settings_in
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.models import Grants, Strict

TEAM = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "ml"}, "gpus": 2}
ISOLATION = {
    "level": "restricted",
    "devices": {"rdma/hca": 1},
    "deviceClasses": {"gpu.nvidia.com": 1},
    "priorityClasses": ["night"],
    "runtimeClasses": ["runc"],
    "annotations": ["a.example.com"],
    "volumes": ["nfs"],
    "bounds": {"cpu": "10", "pods": 20, "graceSeconds": 60},
    "network": {"private": ["8.8.8.0/24"], "apiCidrs": ["10.0.0.1/32"], "internet": False},
}
GRANT = {"nodePool": {"pool": "vision"}, "gpus": 1}


def stack() -> dict[str, Any]:
    return {
        "kai-fleet:cluster": {"name": "lab", "context": "lab"},
        "kai-fleet:sources": {"images": ["mirror.example.com"]},
        "kai-fleet:teams": {"ml": {**TEAM, "isolation": ISOLATION}},
        "kai-fleet:teamStacks": {"vision": GRANT},
    }


def settings(tmp_path, own) -> Settings:
    file = tmp_path / "Pulumi.lab.yaml"
    file.write_text(yaml.safe_dump({"config": own}))
    found = settings_in(file)
    assert found is not None
    return found


def put(own: Any, path: str, value: Any) -> Any:
    """A copy of a stack with another value at a path; None drops it."""
    key, _, rest = path.partition("/")
    changed = dict(own)
    changed[key] = put(own.get(key) or {}, rest, value) if rest else value
    if value is None and not rest:
        del changed[key]
    return changed


ML, OF_TEAM = "kai-fleet:teams/ml", "kai-fleet:teams.ml"
WIDER = [
    ("gpus", 3, "gpus 2 → 3"),
    ("gpus", {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 1}, "gpus.nvidia.com/gpu unset → 2"),
    ("nodePool", None, "nodePool {'pool': 'ml'} → unset"),
    ("nodePool", {"pool": "other"}, "nodePool.pool ml → other"),
    ("tolerations", [{"key": "a/b", "operator": "Exists"}], "tolerations adds {'key': 'a/b'"),
    ("isolation/level", "baseline", "isolation.level restricted → baseline"),
    ("isolation/level", "off", "isolation.level restricted → off"),
    ("isolation/devices", {"rdma/hca": 2}, "isolation.devices.rdma/hca 1 → 2"),
    ("isolation/devices", {"rdma/hca": 1, "a/b": 1}, "isolation.devices.a/b unset → 1"),
    ("isolation/deviceClasses", {"x": 1}, "isolation.deviceClasses.x unset → 1"),
    ("isolation/priorityClasses", ["night", "day"], "isolation.priorityClasses adds day"),
    ("isolation/runtimeClasses", ["nvidia"], "isolation.runtimeClasses adds nvidia"),
    ("isolation/annotations", ["b.example.com"], "isolation.annotations adds b.example.com"),
    ("isolation/volumes", ["iscsi"], "isolation.volumes adds iscsi"),
    ("isolation/bounds/cpu", None, "isolation.bounds.cpu 10 → unset"),
    ("isolation/bounds/cpu", "10500m", "isolation.bounds.cpu 10 → 10500m"),
    ("isolation/bounds/pods", 21, "isolation.bounds.pods 20 → 21"),
    ("isolation/bounds/graceSeconds", 61, "isolation.bounds.graceSeconds 60 → 61"),
    ("isolation/network/enabled", False, "isolation.network.enabled true → false"),
    ("isolation/network/internet", True, "isolation.network.internet false → true"),
    ("isolation/network/private", [], "isolation.network.private drops 8.8.8.0/24"),
    ("isolation/network/apiCidrs", None, "isolation.network.apiCidrs ['10.0.0.1/32'] → unset"),
    ("isolation/network/apiPorts", [443, 6443, 22], "isolation.network.apiPorts adds 22"),
    ("isolation/network/attachments", True, "isolation.network.attachments false → true"),
    ("isolation/network/endpoints", True, "isolation.network.endpoints false → true"),
    ("isolation/network/ingressFrom", ["web"], "isolation.network.ingressFrom adds web"),
    ("vcluster/values", {"sync": {"a": True}}, "vcluster.values.sync.a unset → true"),
    ("vcluster/access", {"annotations": {"a/b": "c"}}, "vcluster.access.annotations.a/b unset → c"),
    ("vcluster/groups", {"ops": "admin"}, "vcluster.groups.ops unset → admin"),
    ("vcluster/licensed", True, "vcluster.licensed false → true"),
    ("registries", {"r.example.com": {"username": "u"}}, ""),  # it is not whole: no password
]


@pytest.mark.parametrize(("path", "value", "says"), WIDER)
def test_more_of_a_teams_key_is_a_line_of_that_team(tmp_path, path, value, says):
    before = settings(tmp_path, stack())
    now = settings(tmp_path, put(stack(), f"{ML}/{path}", value))
    lines = [(item.team, f"{item.subject} {item.words}") for item in granted_lines(before, now)]
    expected = f"{OF_TEAM}.{says}"
    assert says == "" or [line for line in lines if line[1].startswith(expected)], lines
    assert {team for team, _ in lines} <= {"ml"}


@pytest.mark.parametrize(("path", "value", "says"), [row for row in WIDER if row[2]])
def test_less_of_it_is_none(tmp_path, path, value, says):
    before = settings(tmp_path, put(stack(), f"{ML}/{path}", value))
    lines = [
        f"{item.subject} {item.words}"
        for item in granted_lines(before, settings(tmp_path, stack()))
    ]
    # Other values that are neither more nor less stay lines, both ways.
    other = (
        "gpus.",
        "nodePool.pool",
        "runtimeClasses",
        "annotations",
        "volumes",
        "values",
        "deviceClasses",
    )
    assert not lines or any(word in says for word in other), lines


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("kai-fleet:guard/mode", "audit", "host: kai-fleet:guard.mode deny → audit"),
        (
            "kai-fleet:guard/outsideQueues",
            "allow",
            "host: kai-fleet:guard.outsideQueues deny → allow",
        ),
        (
            "kai-fleet:sources/charts",
            ["oci://a.b/c"],
            "host: kai-fleet:sources.charts adds oci://a.b/c",
        ),
        (
            "kai-fleet:mirror",
            "m.example.com",
            "host: kai-fleet:mirror.registry unset → m.example.com",
        ),
        ("kai-fleet:isolation/volumes", ["nfs", "rbd"], "host: kai-fleet:isolation.volumes adds"),
        ("kai-fleet:isolation/volumes", ["rbd"], "vision: kai-fleet:isolation.volumes adds rbd"),
        ("kai-fleet:teamStacks/vision/gpus", 2, "vision: kai-fleet:teamStacks.vision.gpus 1 → 2"),
        ("kai-fleet:teams/new", {**TEAM, "gpus": 4}, "new: kai-fleet:teams.new.gpus 0 → 4"),
        ("kai-fleet:queues", {"q": {"gpu": 4}}, "host: kai-fleet:queues.q.gpu.quota unset → 4"),
    ],
)
def test_what_the_platform_gives(tmp_path, path, value, says):
    before, now = (settings(tmp_path, own) for own in (stack(), put(stack(), path, value)))
    lines = [f"{item.team}: {item.subject} {item.words}" for item in granted_lines(before, now)]
    assert [line for line in lines if line.startswith(says)], lines


@pytest.mark.parametrize("path", [f"{ML}/nodePool", "kai-fleet:teamStacks/vision/nodePool"])
@pytest.mark.parametrize(
    ("now", "widens"),
    [
        ({"a": "b"}, True),
        ({"a": "b", "x": "y"}, True),
        ({"a": "b", "c": "d", "x": "y"}, False),
    ],
)
def test_a_pool_that_loses_one_of_its_labels_is_a_wider_one(tmp_path, path, now, widens):
    before = settings(tmp_path, put(stack(), path, {"a": "b", "c": "d"}))
    lines = granted_lines(before, settings(tmp_path, put(stack(), path, now)))
    key = path.replace("/", ".")
    expected = [f"{key}.c d → unset"] if widens else []
    assert [f"{item.subject} {item.words}" for item in lines] == expected


def test_a_base_that_cannot_be_read_grants_everything_anew(tmp_path):
    now = settings(tmp_path, stack())
    lines = [f"{item.subject} {item.words}" for item in granted_lines(None, now)]
    assert f"{OF_TEAM}.gpus 0 → 2" in lines
    assert granted_lines(now, now) == granted_lines(now, None) == []


def test_queues_of_a_file_are_those_beside_the_stacks_file(tmp_path):
    """Not the project's own file: the base's is in another folder."""
    (tmp_path / "queues.yaml").write_text("q: {gpu: 4}\n")
    found = settings(tmp_path, stack() | {"kai-fleet:queues": "queues.yaml"})
    assert [*found.queues] == ["q"]
    outside = settings(tmp_path, stack() | {"kai-fleet:queues": "../queues.yaml"})
    assert not outside.queues


def test_a_file_of_queues_that_cannot_be_read_has_none(tmp_path):
    (tmp_path / "circle.yaml").symlink_to("back.yaml")
    (tmp_path / "back.yaml").symlink_to("circle.yaml")
    (tmp_path / "folder").symlink_to("folder")
    for name in ("circle.yaml", "folder/queues.yaml", "nosuch.yaml"):
        assert not settings(tmp_path, stack() | {"kai-fleet:queues": name}).queues


def models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from models(model)


def test_only_these_keys_grant_nothing_whatever_they_are():
    """A key that comes is a line of the diff, unless it is put down here."""
    marked = {
        f"{model.__name__}.{name}"
        for model in models(Strict)
        for name in model.__annotations__.keys() & model.model_fields.keys()
        if Grants.NOTHING in model.model_fields[name].metadata
    }
    assert marked == {
        *("Settings.cluster", "Settings.removed", "Settings.workloads"),
        *("Defaults.annotations", "Defaults.labels", "HostPlace.autoscaled", "Runs.queues"),
        *("Gpu.version", "HostKai.version", "Scheduler.version", "Vcluster.version"),
        *("KaiRelease.fairshare", "KaiRelease.shards", "KaiRelease.topologies"),
        *("Queue.display_name", "Vcluster.kubernetes_version"),
        *("Backup.keep", "Backup.node_selector", "Backup.schedule", "Backup.verify"),
    }
