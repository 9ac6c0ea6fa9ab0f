"""Rules about the backups of vClusters."""

from kai_fleet.isolation.policies import ACCOUNTS
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.rules.rule import (
    Findings,
    Judged,
    Subject,
    advisory,
    each_vcluster,
    mandatory,
)
from kai_usage.keys import KAI_NAMESPACE, RESERVED


@mandatory("backup-namespace", "critical", each_vcluster)
def backup_namespace(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """Backups are in a namespace of their own, in which no team has an account.

    The account of a vCluster reads every Secret of its namespace and starts pods there: it would
    read and delete the backups of all teams.
    """
    name = team.backup_namespace or ""
    of_others = (ACCOUNTS, KAI_NAMESPACE, *RESERVED, "default")
    if name.startswith(("team-", "kube-")) or name in of_others:
        path = team.key_path_of("backup", "namespace")
        yield Subject("backup", f"of {team.name}", path).refuse(
            f"would be in namespace {name}, where others than the platform have accounts",
            "write one for backups alone, such as backups",
        )


def _unsaved(cluster: ClusterModel) -> Judged[None]:
    """The control planes of a stack file that says nothing of backups."""
    if cluster.unsaved:
        yield None, Subject("control planes", "of teams", "kai-fleet:backup")


@advisory("backup-declared", "high", _unsaved)
def backup_declared(cluster: ClusterModel, _: None, subject: Subject) -> Findings:
    """Teams have backups of their control planes, or the file says that they need none.

    A vCluster whose volume is lost starts empty, and then deletes every pod of its team.
    """
    yield subject.warn(
        "have no backup",
        "write kai-fleet:backup: {to: s3:https://…/BUCKET} (docs/backups.md), or backup: false for"
        " a team that can be made anew",
    )
