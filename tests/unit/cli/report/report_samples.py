"""A report to look at."""

from datetime import UTC, datetime, timedelta

from kai_fleet_cli.report.records import Pool, QueueRow, Report, Team, Wait
from kai_fleet_policies.finding import Finding, Level

TIME = datetime(2026, 11, 24, 7, 30, tzinfo=UTC)
KAI = "KAI v0.16.8"


def busy():
    """Waiting, a vCluster that does not answer, a node that is not Ready."""
    fix = (
        "wait for a pod of that queue to end, or look with: `kubectl --kubeconfig ml.kubeconfig -n"
        " default describe pod pretraining-worker-0`"
    )
    return Report(
        stack="prod",
        time=TIME,
        teams=(
            Team("ml", 16, 11, 4, KAI, None),
            Team("vision", 8, None, None, "KAI of its own stack", None),
            Team("nlp", 4, 0, None, KAI, None),
        ),
        queues={
            "ml": (
                QueueRow("ml", None, 1, False, 16, 16, 10.75, 4, ""),
                QueueRow("serve", "ml", 2, True, 4, -1, 1.25, 0, ""),
            ),
        },
        pools=(
            Pool("kai-fleet/pool=ml", ("ml",), 2, 2, 16, 11, 0),
            Pool("", (), 1, 1, 8, 0, 0),
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
                (),
            ),
        ),
        findings=(
            Finding(Level.MANDATORY, "host", "node", "a", "it is <not> Ready", "`kubectl get`"),
        ),
        missing=("team nlp: it does not answer in time",),
    )
