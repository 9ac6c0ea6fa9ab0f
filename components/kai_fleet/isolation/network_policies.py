"""The network policies of a declared team."""

from typing import Any

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards import network_policies
from kai_fleet.settings.sections.isolation import Network


def of_team(team: DeclaredTeam) -> dict[str, Any]:
    """By name: each its spec."""
    if team.isolation is None:
        return {}
    return network_policies.network_policies(team.name, {"isolation": team.isolation.model_dump()})


def is_internet(address: str, network: Network) -> bool:
    """Whether pods reach an address because it counts as a public one."""
    return network_policies.is_internet(address, network.model_dump())
