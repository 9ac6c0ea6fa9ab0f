"""Reports to look at: one of a small busy fleet, one with everything wrong, one of many teams."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kai_fleet.fleet.amounts import Amounts
from kai_fleet.fleet.queues import QueueIndex
from kai_fleet.kube.objects import KubeObject
from kai_fleet_cli.report.model import (
    GpuSum,
    PeriodUse,
    PoolReport,
    StackReport,
    StackUpdate,
    TeamReport,
    UseOverTime,
    UseRow,
    Version,
    WaitGroup,
)
from kai_fleet_cli.usage.queues import QueuePods, queue_of, tree
from kai_fleet_cli.waiting.finding import Finding, Health

MADE = datetime(2026, 11, 24, 7, 30, tzinfo=UTC)
KAI = Version("v0.16.8", "v0.16.8", "supported until 2027-06-30")
OLD = Version("v0.9.3", "v0.9.3", "line v0.9 is out of support since 2026-09-30", False)
VCLUSTER = Version("v0.36.1", "v0.36.1")


def tree_of(items, pods):
    return tree(QueueIndex(map(queue_of, items)), pods)


def queue(name, parent=None, quota=0.0, limit=-1.0):
    share = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    resources = {key: {"quota": -1, "limit": -1} for key in ("cpu", "memory")} | {"gpu": share}
    parents = {"parentQueue": parent} if parent else {}
    return KubeObject(metadata={"name": name}, spec={**parents, "resources": resources})


def held(in_use, waiting=0.0):
    return QueuePods(Amounts(gpu=in_use), Amounts(gpu=waiting), int(in_use), int(waiting))


def busy():
    """Borrowing, waiting, a vCluster that does not answer, a node that is not Ready."""
    ml = tree_of(
        [
            queue("ml", None, 16, 16),
            queue("train", "ml", 12),
            queue("serve", "ml", 4),
            queue("sweeps-with-a-long-name-that-somebody-gave-it", "train", 8),
            queue("pretraining", "train", 4),
        ],
        {
            "sweeps-with-a-long-name-that-somebody-gave-it": held(3),
            "pretraining": held(6.5, 4),
            "serve": held(1.25),
        },
    )
    return StackReport(
        stack="prod",
        cluster="prod-eu-1",
        made=MADE,
        live=True,
        kubernetes="v1.34.4",
        gpus=GpuSum(ready=40, not_ready=8, in_use=17.75, free=21),
        teams=(
            TeamReport("ml", "virtual", 16, 10.75, 4, 3, KAI, VCLUSTER),
            TeamReport("research", "virtual", 16, 7, 2, 2, OLD, VCLUSTER),
            TeamReport("dev", "default", 4, 0, 0, 0, None, VCLUSTER),
            TeamReport("vision", "own stack", 8, own_stack=True),
            TeamReport("nlp", "virtual", 4, unreached="it does not answer in time", kai=KAI),
        ),
        pools=(
            PoolReport(
                "kai-fleet/pool=ml", ("ml",), 2, 2, ("NVIDIA-H100",), GpuSum(16, 0, 10.75, 5)
            ),
            PoolReport(
                "kai-fleet/pool=research", ("research",), 3, 2, ("A100",), GpuSum(16, 8, 7, 9)
            ),
            PoolReport("", (), 1, 1, (), GpuSum(8, 0, 0, 8)),
        ),
        trees={"ml": list(ml.values())},
        waits=(
            WaitGroup(
                "ml",
                ("pretraining",),
                3,
                4,
                MADE - timedelta(hours=27),
                "its group of 3 pods asks for 4 GPUs together, and queue ml holds 10.75 of at most"
                " 16",
                "wait for a pod of that queue to end, or look with: `kubectl --kubeconfig"
                " ml.kubeconfig -n default describe pod pretraining-worker-0`",
            ),
            WaitGroup("research", (), 2, 2, MADE - timedelta(seconds=20)),
        ),
        findings=(
            Finding(
                "kai",
                Health.WARNING,
                "research",
                "KAI v0.9.3",
                "line v0.9 is out of support",
                "move on",
            ),
            Finding(
                "nodes",
                Health.BROKEN,
                "host",
                "node a",
                "it is <not> Ready",
                "look with: `kubectl get`",
            ),
        ),
        well=41,
        updates=(
            StackUpdate(
                MADE,
                "update",
                "succeeded",
                changes=("team vision: new with KAI v0.16.8, vCluster default",),
                checkout="3f2b1c9a of Ada",
                resources="3 created",
            ),
            StackUpdate(
                MADE - timedelta(days=2), "update", "failed", changes=("no team, no version",)
            ),
        ),
        missing={"what team nlp holds and waits for": "it does not answer in time"},
    )


def priced():
    """The same with GPU-hours and their cost, of long names and large numbers too."""

    def uses(hours, before):
        month = PeriodUse(hours and hours * 4.3, None, hours and hours * 4.3 * 4.2)
        return {"7d": PeriodUse(hours, before, hours and hours * 4.2), "30d": month}

    teams = (
        UseRow("ml", "", uses(1806.0, 1500.0)),
        UseRow("ml", "sweeps-with-a-long-name-that-somebody-gave-it", uses(504.0, 0.0)),
        UseRow("research", "", uses(1_234_567.8, 1_300_000.0)),
        UseRow("nlp", "", uses(None, None)),
    )
    idle = (
        UseRow("kai-fleet/pool=ml", "", uses(882.0, None)),
        UseRow("no labels of a pool", "", uses(1344.0, None)),
    )
    notes = ("Team nlp is not counted: Prometheus has no numbers of it for 7d.",)
    return replace(busy(), over_time=UseOverTime(("7d", "30d"), "EUR", teams, idle, notes))


def many(teams=100, queues=10):
    """A large fleet: as many teams, each with as many queues."""
    found = [
        TeamReport(f"team-{n:03}", "virtual", 8, float(n % 9), float(n % 3), n % 3, KAI, VCLUSTER)
        for n in range(teams)
    ]
    trees = {}
    for team in found:
        items = [queue("all", None, 8, 8), *(queue(f"q-{n}", "all", 1) for n in range(queues - 1))]
        trees[team.name] = list(tree_of(items, {"q-0": held(team.in_use or 0)}).values())
    return StackReport(
        stack="prod",
        cluster="prod",
        made=MADE,
        live=True,
        gpus=GpuSum(1000, 0, 400, 600),
        teams=tuple(found),
        pools=(
            PoolReport(
                "", tuple(team.name for team in found), 125, 125, (), GpuSum(1000, 0, 400, 600)
            ),
        ),
        trees=trees,
    )
