"""The rights of a declared team's vCluster."""

from typing import Any

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards import vcluster_rights
from kai_fleet.guards.vcluster_rights import NAME as NAME
from kai_fleet.guards.vcluster_rights import account as account
from kai_fleet.guards.vcluster_rights import called as called


def on_host(*, sees_nodes: bool) -> list[Any]:
    """The rules of its ClusterRole."""
    return [*vcluster_rights.on_host({"scheduler": "inside" if sees_nodes else "host"})]


def of_team(team: DeclaredTeam) -> list[Any]:
    """The rules of its Role."""
    args: dict[str, Any] = {}
    if not team.granted and team.version is not None:
        args = {"vcluster_version": team.version, "vcluster_values": team.chart_values}
    rules: Any = vcluster_rights.in_namespace(team.name, args)
    return [*rules]
