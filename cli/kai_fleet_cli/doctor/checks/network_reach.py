"""Whether the teams' network policies fit this host: where its API server and its nodes are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kai_fleet.isolation.network_policies import is_internet
from kai_fleet.settings.sections.isolation import Network
from kai_fleet_cli.doctor.checks.network_plugin import is_fake
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import name_of, spec

NAME = "network-reach"
_KEY: Final = "kai-fleet:isolation.network"


def check(look: Snapshot) -> Iterator[Finding]:
    """Each way in which teams' networks are configured, once; nothing on a host of fake nodes."""
    host = look.host
    wanted = [team.wanted.isolation for team in look.teams.values()]
    networks = [it.network for it in wanted if it is not None and it.on and it.network.enabled]
    if not networks or all(map(is_fake, host.all("nodes"))):
        return
    found = [*_api(host, networks), *_nodes(host, networks)]
    yield from found
    if not found:
        yield host.well(NAME, "addresses of the host")


def _api(host: ClusterState, networks: list[Network]) -> Iterator[Finding]:
    """The Service of the API server says at which port it listens."""
    service = host.named("services", "kubernetes", "default")
    ports: list[Any] = [] if service is None else spec(service).get("ports") or []
    for port in {found for each in ports if isinstance(found := each.get("targetPort"), int)}:
        lacking = next((it.api_ports for it in networks if port not in it.api_ports), None)
        if lacking is not None:
            let = ", ".join(map(str, lacking))
            yield host.broken(
                NAME,
                "API server of the host",
                f"it listens at port {port}, and network policies let vClusters reach ports {let}:"
                " where they are enforced no vCluster starts",
                f"write {_KEY}.apiPorts: [443, {port}]",
            )


def _nodes(host: ClusterState, networks: list[Network]) -> Iterator[Finding]:
    """Nodes and pods whose addresses count as internet, which every team reaches."""
    public = [
        (name_of(node), address)
        for node in host.all("nodes")
        for address in [
            *(
                str(each.get("address"))
                for each in (node.get("status") or {}).get("addresses") or []
                if each.get("type") == "InternalIP"
            ),
            *(str(cidr).partition("/")[0] for cidr in spec(node).get("podCIDRs") or []),
        ]
        if any(is_internet(address, network) for network in networks)
    ]
    if public:
        name, address = public[0]
        more = f", and {len(public) - 1} more" if len(public) > 1 else ""
        yield host.warning(
            NAME,
            "addresses of the host",
            f"node {name} has {address}{more}, which is no private address: teams' pods reach it as"
            " internet",
            f"write the ranges of nodes and pods in {_KEY}.private",
        )
