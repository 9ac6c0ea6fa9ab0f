"""A mode of GPU sharing only where KAI's version, the cluster and the isolation have it."""

from kai_fleet import releases
from kai_fleet.fleet.model import HOST, DeclaredCluster, DeclaredKai
from kai_fleet.releases.sharing import (
    FRACTIONS_DRIVER,
    FRACTIONS_OPERATOR,
    HAMI_CORE,
    MODES,
    NOT_ENFORCED,
    NV_FRACTIONS,
    SINCE,
    has_mode,
)
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity, of_team
from kai_fleet_policies.rules.kai import of_kai

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "NonMemoryEnforced leaves GPU memory to agreement. HamiCore and NvFractions enforce it, by"
    " parts on the nodes: without those, pods that share a GPU stay Pending or share without a"
    " bound (C7)."
)
REMEDY = "Write the version or the mode that the message names."


def check(cluster: DeclaredCluster) -> Problems:
    """Each KAI's mode, and a host's teams against the modes that their pods are shared by."""
    for kai in cluster.kai:
        yield from _of_kai(cluster, kai)
    for team in cluster.teams:
        schedulers = cluster.kai if team.mode == "host" else team.kai
        if team.isolated and any(kai.sharing == HAMI_CORE for kai in schedulers):
            # The isolator mounts its library from the node into each pod.
            yield of_team(team, "isolation", "level").mandatory(
                f"is {team.level}, and mode {HAMI_CORE} mounts a library of the node into each pod"
                " that shares a GPU (hostPath), which that level refuses; write level: off for the"
                f" team, or mode: {NOT_ENFORCED} for its KAI"
            )


def _of_kai(cluster: DeclaredCluster, kai: DeclaredKai) -> Problems:
    place, mode, version = of_kai(kai, cluster, "gpuSharing"), kai.sharing, kai.version
    if mode is UNKNOWN or version is UNKNOWN or not version:
        return
    if mode not in MODES:
        yield place.mandatory(f"is {mode}, which is no mode; write {listed(MODES, 'or')}")
    elif not has_mode(version, mode):
        newest = next(it for it in reversed(list(releases.KAI)) if has_mode(it, mode))
        yield place.mandatory(
            f"is {mode}, which KAI has from {SINCE[mode]} on, and the version is {version}; write"
            f" version: {newest}, or mode: {NOT_ENFORCED}"
        )
    elif mode == NV_FRACTIONS and cluster.declared and cluster.name != HOST:
        yield place.mandatory(
            f"is {mode}, whose operator works on the nodes themselves, with rights that no team's"
            f" pod has; write mode: {HAMI_CORE} or {NOT_ENFORCED}, or have the team in mode host"
            " with a KAI of the host in this mode"
        )
    elif mode == NV_FRACTIONS:
        yield place.advisory(
            f"is {mode}: pods that share a GPU stay Pending on nodes without NVIDIA's GPU operator"
            f" {FRACTIONS_OPERATOR}, its NRI plugin in the container runtime and driver"
            f" {FRACTIONS_DRIVER} or newer, which is not the operator's own"
            " (gpu.values: driver.version); nobody ran it with this program"
        )
    elif mode == HAMI_CORE:
        yield place.advisory(
            f"is {mode}: GPU memory is enforced only with the chart kai-resource-isolator on the"
            " host, and only on nodes that have the label nvidia.com/gpu.memory before KAI starts;"
            " nobody ran it with this program"
        )
