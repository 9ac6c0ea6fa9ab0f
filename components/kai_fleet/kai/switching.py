"""How a KAI release gets to its new version: by an upgrade in place, or replaced."""

import pulumi

from kai_fleet.releases import KAI, KaiRelease, why_replaced


def replacing_properties(
    version: KaiRelease, installed: str | None, component: pulumi.Resource
) -> list[str]:
    """Properties of the release whose change replaces it; none if Helm upgrades it in place.

    Log, if the version changes, whether the release is upgraded in place or replaced, and why. They
    are given without a switch, too: where an upgrade recreates kai-config, other values count.
    `installed` is the version that the stack has; None if it has no release, or if the stack's
    state is not readable.
    """
    if installed is not None and installed != version.version:
        why = _log_switch(version, installed, component)
        if not why:
            return []
    if not version.recreates_config:
        return ["version"]
    # Where an upgrade recreates kai-config, so does a change of values (K12).
    return ["version", "values", "chart", "repositoryOpts"]


def _log_switch(version: KaiRelease, installed: str, component: pulumi.Resource) -> str:
    """Log how the release gets to its new version; return why it is replaced, "" if not."""
    before = KAI.get(installed)
    why = f"{installed} is not in the table"
    if before is not None:
        why = why_replaced(before, version)
    verb = "replaced" if why else "upgraded in place"
    step = f"{installed} → {version.version}: {why or 'helm upgrades it in place'}"
    more = ""
    if version.groups_deployments and not (before and before.groups_deployments):
        more = "; a Deployment made after it is one PodGroup"
    pulumi.log.info(f"KAI is {verb}: {step}. Queues and running pods stay{more}", component)
    return why
