"""A vCluster whose API server answers what its tenant likes: the other team is read and judged."""

import contextlib
import copy
import time

import pytest

from kai_fleet.cluster.kube.api import Api
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.read import Source, read_clusters
from kai_fleet_cli.report.build import build_report
from kai_fleet_cli.report.page import page
from kai_fleet_stack.settings.loading import load
from tests.unit.cli.doctor.doctor_samples import SETTINGS
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.cluster.canned_api import kubeconfig, serving
from tests.unit.usage.usage_samples import pod, queue

QUEUES = "/apis/scheduling.run.ai/v2/queues"


def two_teams():
    raw = copy.deepcopy(SETTINGS)
    raw["vcluster"] = {"access": {"type": "NodePort", "host": "127.0.0.1"}}
    raw["teams"]["dev"] = copy.deepcopy(raw["teams"]["ml"])
    raw["teams"]["dev"]["nodePool"] = {"kai-fleet/pool": "dev"}
    return load(raw).settings


def on_host(**addresses):
    """What the host answers of teams whose vClusters have these addresses."""
    services, spaces, planes, answers = [], [], [], {}
    for team, url in addresses.items():
        port = int(url.rpartition(":")[2])
        about = {"name": team, "namespace": f"team-{team}"}
        planes.append({"metadata": about, "status": {"readyReplicas": 1}})
        services.append({"metadata": about, "spec": {"ports": [{"nodePort": port}]}})
        spaces.append({"metadata": {"name": f"team-{team}", "labels": {"kai-fleet/team": team}}})
        secret = {"data": vcluster_secrets.data(of=vcluster_secrets.keys(team))}
        answers[f"/api/v1/namespaces/team-{team}/secrets/vc-{team}"] = (200, secret)
    answers["/api/v1/namespaces"] = (200, {"items": spaces})
    answers["/apis/apps/v1/statefulsets"] = (200, {"items": planes})
    answers["/api/v1/services"] = (200, {"items": services})
    return answers


@contextlib.contextmanager
def seen(answers):
    """The snapshot of a stack whose team ml answers these."""
    servers = vcluster_secrets.serving("ml"), vcluster_secrets.serving("dev")
    with serving() as (api, url), servers[0] as (hostile, ml), servers[1] as (_, dev):
        api.answers |= on_host(ml=ml, dev=dev)
        hostile.answers |= {path: (200, answer) for path, answer in answers.items()}
        host = Api.of_kubeconfig(kubeconfig(url))
        yield read_clusters(Source(two_teams(), lambda: host))


def reported(look):
    """What doctor and report say of team ml, after they had to judge dev, too."""
    findings = examine(look)
    report = build_report("lab", look, examine(look, without="pending"))
    assert page(report)
    assert look.teams["dev"].inside is not None
    assert [found for found in findings if found.path == "dev"]
    assert [team.name for team in report.teams] == ["ml", "dev"]
    return look.teams["ml"].unreached, findings, report


EMPTY = b'{"items": [' + b"{}," * 10_000_000 + b"{}]}"
HEAVY = b'{"items": [{"metadata": {"name": "a"}, "x": "' + b"x" * (31 << 20) + b'"}]}'


@pytest.mark.parametrize(
    ("body", "says"), [(EMPTY, "4194304 values"), (HEAVY, "64 MiB")], ids=["empty", "heavy"]
)
def test_much_that_is_small_enough_each_time_is_too_much_together(body, says):
    kinds = ("pods", "services", "events", "persistentvolumeclaims", "nodes", "namespaces")
    with seen({f"/api/v1/{kind}": body for kind in kinds}) as look:
        unreached, findings, report = reported(look)
    assert unreached == f"it answers more than {says}, which is more than is read of it"
    (cause,) = [found.cause for found in findings if unreached in found.cause]
    assert cause.startswith("its API: ")
    assert report.missing == [f"team ml: {unreached}"]


def chain(length):
    names = [f"q{n}" for n in range(length)]
    return [queue(name, above) for name, above in zip(names, [None, *names], strict=False)]


def comb(length):
    return [queue("top"), *(queue(f"q{n}", "top") for n in range(length - 1))]


TOO_MANY = {
    "a chain": (chain(4000), "its queues have 4000 levels; at most 32 are judged"),
    "a chain below a declared one": (
        [queue("default"), queue("q0", "default"), *chain(40)[1:]],
        "its queues have 41 levels; at most 32 are judged",
    ),
    "a comb": (comb(5001), "it has 5001 queues; at most 5000 are judged"),
}


@pytest.mark.parametrize("what", TOO_MANY)
def test_more_queues_or_levels_than_anybody_has_are_not_judged(what):
    items, says = TOO_MANY[what]
    with seen({QUEUES: {"items": items}}) as look:
        unreached, _, report = reported(look)
    assert unreached.startswith(says)
    assert report.missing == [f"team ml: {unreached}"]


def test_a_declared_queue_with_malformed_finalizers_is_that_teams_fault():
    going = queue("train", "default")
    going["metadata"] |= {"deletionTimestamp": "2026-11-01T00:00:00Z", "finalizers": 5}
    with seen({QUEUES: {"items": [queue("default"), going]}}) as look:
        _, findings, _ = reported(look)
    assert [found for found in findings if "so not all of it was checked" in found.cause]


def ring(length):
    return [queue(f"q{n}", f"q{(n + 1) % length}") for n in range(length)]


def pods(count, **more):
    return [pod(f"p{n}", **more) for n in range(count)]


def events(count, name=None):
    about = {"kind": "Pod", "namespace": "default"}
    text = "0/3 nodes are available: " + "3 Insufficient nvidia.com/gpu, " * 20
    return [
        {
            "metadata": {"name": f"e{n}", "namespace": "default"},
            "involvedObject": about | {"name": name or f"p{n}"},
            "message": text,
        }
        for n in range(count)
    ]


# Each is within the bounds, and was quadratic or without end.
LARGE = {
    "a ring of queues": {QUEUES: ring(5000)},
    "a queue that is its own parent": {QUEUES: [queue("a", "a")]},
    "one name again and again": {
        QUEUES: [queue("a"), *[queue("a", "a")] * 4000, *chain(20)] * 2,
        "/api/v1/pods": pods(1) * 5000,
        "/api/v1/events": events(5000, "p0"),
    },
    "pods of a queue with many below it": {
        QUEUES: comb(5000),
        "/api/v1/pods": pods(3000, queue="top", asks={"nvidia.com/gpu": "1"}),
    },
    "pods and nodes": {
        "/api/v1/nodes": [{"metadata": {"name": f"n{n}"}} for n in range(5000)],
        "/api/v1/pods": pods(3000, asks={"nvidia.com/gpu": "1"}),
        "/api/v1/events": events(3000),
    },
    "one name in each namespace": {
        "/api/v1/pods": [
            pod("p", namespace=f"n{n}", pod_group_name="g", asks={"nvidia.com/gpu": "1"})
            for n in range(4000)
        ],
        "/apis/scheduling.run.ai/v2alpha2/podgroups": [
            {"metadata": {"name": "g", "namespace": f"n{n}"}} for n in range(4000)
        ],
    },
}


@pytest.mark.parametrize("what", LARGE)
def test_what_is_large_and_within_the_bounds_is_judged_in_time(what):
    answers = {path: {"items": items} for path, items in LARGE[what].items()}
    with seen(answers) as look:
        begun = time.process_time()
        unreached, findings, _ = reported(look)
        spent = time.process_time() - begun
    assert unreached == ""
    assert spent < 20, "three times as long as it took where it was written"
    assert "so many objects" not in str([found.cause for found in findings])
