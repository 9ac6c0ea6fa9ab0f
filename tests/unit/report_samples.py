"""Reports to look at: a small busy fleet, one without anything, and one of many teams."""

from datetime import UTC, datetime, timedelta

from kai_fleet.finding import Finding, Level
from kai_fleet_cli.doctor.usage import QueueUse
from kai_fleet_cli.report.build import Pool, Report, Team, Wait

TIME = datetime(2026, 11, 24, 7, 30, tzinfo=UTC)
KAI = "KAI v0.16.8"
LONG = "sweeps-with-a-long-name-that-somebody-gave-it"


def busy():
    """Borrowing, waiting, a vCluster that does not answer, a node that is not Ready."""
    fix = (
        "wait for a pod of that queue to end, or look with: `kubectl --kubeconfig ml.kubeconfig -n"
        " default describe pod pretraining-worker-0`"
    )
    return Report(
        stack="prod",
        time=TIME,
        teams=(
            Team("ml", 16, 11, 4, KAI),
            Team("research", 12, 14, 2, "KAI v0.9.3"),
            Team("dev", 4, 0, 0, "Kubernetes"),
            Team("vision", 8, scheduler="KAI of its own stack"),
            Team("nlp", 4, 0, None, KAI),
        ),
        queues={
            "ml": (
                QueueUse("ml", None, 1, False, 16, 16, 10.75, 4),
                QueueUse("serve", "ml", 2, True, 4, -1, 1.25),
                QueueUse("train", "ml", 2, False, 12, -1, 9.5, 4),
                QueueUse("pretraining", "train", 3, True, 4, -1, 6.5, 4),
                QueueUse(LONG, "train", 3, True, 8, 8, 3),
            ),
            "research": (
                QueueUse("research", None, 1, False, -1, -1, 14, 2),
                QueueUse("all", "research", 2, True, 12, -1, 14, 2, "The lab"),
            ),
        },
        pools=(
            Pool("kai-fleet/pool=ml", ("ml",), 2, 2, 16, 11),
            Pool("kai-fleet/pool=research", ("research",), 3, 2, 16, 14, 8),
            Pool("", (), 1, 1, 8),
        ),
        waits=(
            Wait(
                "ml",
                ("pretraining",),
                3,
                4,
                TIME - timedelta(hours=27),
                "its group of 3 pods asks for 4 GPUs together, and queue ml holds 10.75 of at most"
                " 16",
                fix,
            ),
            Wait("research", (), 2, 2, TIME - timedelta(seconds=20)),
        ),
        findings=(
            Finding(Level.ADVISORY, "research", "KAI", "v0.9.3", "it is old", "move on"),
            Finding(Level.MANDATORY, "host", "node", "a", "it is <not> Ready", "`kubectl get`"),
            Finding(Level.OK, "host", "check", "guards", ""),
        ),
        missing=("team nlp: it does not answer in time",),
    )
