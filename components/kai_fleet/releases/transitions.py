"""What it takes to get from one version to another: plain decisions, for any pair."""

from dataclasses import dataclass
from typing import Literal

from kai_fleet.releases import VCLUSTER, KaiRelease, version_key

Kind = Literal["install", "keep", "in-place", "replace"]


@dataclass(frozen=True)
class Transition:
    """How a KAI release gets from one version to another, and why that way.

    replace: uninstalled, cleaned up, installed. Queues, CRDs and running pods stay either way; it
    takes no longer than an upgrade in place (43.0 s against 42.4 s, v0.9.3 to v0.16.8).
    """

    kind: Kind
    why: str


def kai_transition(before: KaiRelease | None, after: KaiRelease) -> Transition:
    """The way from `before` (None: nothing is installed) to `after`."""
    if before is None:
        return Transition("install", f"no KAI is there yet; {after.version} is installed")
    step = f"{before.version} → {after.version}"
    if before.version == after.version:
        return Transition("keep", f"{after.version} stays")
    replaced = (
        (
            version_key(after.version) < version_key(before.version),
            "helm cannot downgrade this chart",  # K9 of docs/traps.md
        ),
        (
            before.has_operator != after.has_operator,
            "the new chart has kai-operator, whose CRD helm upgrade does not install",  # K7
        ),
        (
            not before.has_operator and before.deployments != after.deployments,
            "admission moves from the binder into its own Deployment",
        ),
        (
            before.operator_makes_binder != after.operator_makes_binder,
            "chart and operator both claim the binder's objects",  # K8
        ),
        (
            after.recreates_config,
            f"helm upgrade to {after.version} recreates kai-config, and its scheduler would not"
            " come up for most of an hour",  # K12
        ),
    )
    for holds, why in replaced:
        if holds:
            return Transition("replace", f"{step}: {why}")
    return Transition("in-place", f"{step}: helm upgrades it in place")


def vcluster_refusal(before: str, after: str) -> str | None:
    """Why a vCluster cannot go from one version to the other in one step; None where it can.

    Upgrades go one minor line at a time, and there is no way back: the state in the volume and
    Kubernetes' own storage versions are not undone.
    """
    old, new = version_key(before)[:2], version_key(after)[:2]
    if version_key(after) < version_key(before):
        return (
            f"{before} → {after} is a downgrade, which vCluster does not support; write {before},"
            " or remove the team and add it again"
        )
    if new[0] == old[0] and new[1] - old[1] <= 1:
        return None
    skipped = ", ".join(f"v{old[0]}.{minor}" for minor in range(old[1] + 1, new[1]))
    line = f"v{old[0]}.{old[1] + 1}"
    first = next((known for known in VCLUSTER if known.startswith(f"{line}.")), None)
    return (
        f"{before} → {after} skips {skipped}: vCluster goes one minor version at a time; write"
        f" {first or f'a version of {line}'} first, then up line by line"
    )
