"""The steps of an upgrade: vClusters, the host, the Kubernetes inside, KAI; each for all teams.

A step is an edit of the stack file and the update after it. Nothing is written here. The texts of
a step are in `upgrade.yaml`.
"""

from collections.abc import Iterable, Mapping

from kai_fleet import releases
from kai_fleet.releases import KAI, KUBERNETES, VCLUSTER, minor_line, version_key
from kai_fleet.releases.chart_stores import kubernetes_of
from kai_fleet_cli.errors import UserError
from kai_fleet_policies.model.cluster import HOST, DeclaredTeam
from kai_fleet_policies.rules import upgrade_steps
from kai_fleet_policies.rules.vclusters import kubernetes_key

_PARTS = releases.table("upgrade", __package__)
# Of a team by part: `vCluster`, `host` ("" if it is not known), `Kubernetes`, `KAI` ("": none).
Versions = dict[str, str]
# Texts of a step by name: `part`, `team`, `before`, `after`, `effect`, `tried` (whether anybody ran
# the versions after it together), `key` and `command`, which are "" for the host, and `text`, which
# is printed.
Step = Mapping[str, str]


def steps(
    stack: str,
    teams: Iterable[DeclaredTeam],
    host: str,
    targets: Mapping[str, str],
) -> list[Step]:
    """The steps of these teams in their order.

    Args:
        stack: The stack, for commands.
        teams: The teams as its file has them.
        host: Version of the host's Kubernetes; "" if it is not known.
        targets: Versions to reach by part. "" is the newest advised one; of the host its own.

    Raises:
        UserError: A step is one that a rule refuses.
        UnknownVersionError: The table lacks a version.
    """
    found = list[Step]()
    states = [(team, _versions(team, host)) for team in teams]
    for part in _PARTS:
        for team, now in states:
            target = targets[part] or _advised(part, now)
            for version in _way(part, now[part], target):
                step = _take(stack, team, now, part, version)
                if step not in found:  # those of the host are the same for each team
                    found.append(step)
    return found


def _versions(team: DeclaredTeam, host: str) -> Versions:
    """The versions of a team as its stack's file has them."""
    return {
        "vCluster": str(team.version),
        HOST: host,
        "Kubernetes": str(team.kubernetes),
        "KAI": str(team.inside.scheduler.version or ""),
    }


def _advised(part: str, now: Versions) -> str:
    """The newest advised version of a part; what is there if none is newer, and for the host.

    It does not matter for a team without a KAI.
    """
    advised = {
        "vCluster": releases.advised(VCLUSTER),
        "Kubernetes": releases.vcluster(now["vCluster"], untested=True).kubernetes,
        "KAI": releases.advised(KAI),
    }
    return max(now[part], advised.get(part) or "", key=version_key)


def _way(part: str, before: str, after: str) -> list[str]:
    """The versions up to `after`, of each minor line in between the newest known one.

    Empty if that is there, of the host only in its line; for a team without a KAI; and if what is
    there is no version, as of an image of one's own. Only `after` for KAI, and for a host that is
    not known.
    """
    first = minor_line(before or after)
    last = minor_line(after)
    is_there = part == HOST and before and last <= first
    has_none = part == "KAI" and not before
    if after == before or not first or is_there or has_none:
        return []
    known = {
        "vCluster": VCLUSTER,
        "KAI": (),
    }.get(part, KUBERNETES)
    newest = {minor_line(version): version for version in known}
    between = [version for line, version in newest.items() if first < line < last]
    return [*between, after]


def _take(
    stack: str,
    team: DeclaredTeam,
    now: Versions,
    part: str,
    version: str,
) -> Step:
    """Take a step: change the versions, and return it. Raises as `steps`."""
    before = now[part]
    now[part] = version
    release = releases.vcluster(now["vCluster"], untested=team.untested)
    how = ""
    refusal = None
    if part == "vCluster":
        refusal = upgrade_steps.vcluster_refusal(before, version)
        now["Kubernetes"] = kubernetes_of(team.chart_values) or release.kubernetes
    elif part == HOST:
        refusal = upgrade_steps.host_refusal(release.version, now["Kubernetes"], version)
    elif part == "Kubernetes":
        newest = None if team.untested else release.kubernetes
        refusal = upgrade_steps.kubernetes_refusal(version, before, newest)
    else:
        how = _switch(before, version, untested=team.inside.scheduler.untested)
    if refusal:
        raise UserError(f"{part} of {team.name}: {'; '.join(refusal)}")
    trial = [now["Kubernetes"], now["KAI"], now["vCluster"]]
    step = {
        "part": part,
        "team": team.name,
        "path": team.path,
        "stack": stack,
        "before": before or "unknown",
        "after": version,
        "how": how,
        "kubernetes_key": kubernetes_key(team),
        "tried": _trial(version) if part == HOST else _trial(*trial),
    }
    for name, text in _PARTS[part].items():
        step[name] = text.format_map(step)  # a text may have those before it
    return step


def _switch(before: str, after: str, *, untested: bool) -> str:
    """How KAI goes from one version to another, in words. Raises as `steps`."""
    new = releases.kai(after, untested=untested)
    reason = releases.why_replaced(releases.kai(before, untested=True), new)
    return f"replaced ({reason})" if reason else "upgraded in place"


def _trial(kubernetes: str, kai: str = "", vcluster: str = "") -> str:
    """Whether these versions ran together on real nodes, in words; "" is none."""
    if releases.was_tried(kubernetes, kai, vcluster):
        return "tried on real nodes"
    versions = {"vCluster": vcluster, "Kubernetes": kubernetes, "KAI": kai}
    names = ", ".join(f"{part} {version}" for part, version in versions.items() if version)
    return f"never tried on real nodes: {names}"
