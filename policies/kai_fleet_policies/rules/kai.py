"""Rules about KAI: versions of the release table, what a version has, and values of its chart."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.releases import KAI
from kai_fleet.releases.allowed_values import refusals, unread
from kai_fleet.values import UNKNOWN, at, get, value_at
from kai_fleet_policies.model.cluster import Cluster, Kai
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    advisory,
    each_kai,
    known,
    mandatory,
    of_kai,
    row,
)


@mandatory("kai-version-known", "high", each_kai)
def kai_version_known(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Only KAI versions of the release table.

    Charts differ by version in names, hooks and defects, and the highest tag, v0.20.1, is a
    retracted one.
    """
    version, place = known(kai.version, "its version is known"), place.at("version")
    if not version:
        yield place.refuse(*row("kai-no-version", advised=releases.advised(KAI) or list(KAI)[-1]))
        return
    retracted = version == releases.RETRACTED
    why = "retracted (its chart is that of v0.10.2)" if retracted else "not supported here"
    yield from in_table(KAI, version, kai.untested, place, why)


def in_table(
    table: Mapping[str, Any], version: str, untested: bool, place: Place, why: str
) -> Findings:
    """Whether a version is of the table, or may be taken for one of it; `why` it is not."""
    if untested and (nearest := releases.taken_for(table, version)):
        yield place.warn(*row("version-untested", version=version, nearest=nearest))
    elif version not in table:
        values = {"version": version, "why": why, "all": ", ".join(table)}
        yield place.refuse(
            *row("version-unknown", **values, instead=releases.instead(table, version))
        )


@advisory("kai-version-supported", "medium", each_kai)
def kai_version_supported(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """KAI versions that still get fixes, and that nothing is known against.

    A line out of support gets no more fixes, security fixes included; a version may have
    vulnerabilities that the next one repairs.
    """
    yield from of_advice(KAI, str(kai.version), place.at("version"))


def of_advice(table: Mapping[str, Any], version: str, place: Place) -> Findings:
    """The advice against a version, as `fleet releases` has it."""
    if version in table and not (standing := releases.standing(table, version)).maintained:
        advice = releases.advice(table, version)
        yield place.warn(f"is {version}, and {standing.words}", advice)


_SINCE: Final = {"shards": "v0.10", "fairshare": "v0.10", "topologies": "v0.12"}


@mandatory("kai-feature-known", "high", each_kai)
def kai_feature_known(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Shards, fairness over time and topologies only where the KAI version has them.

    Before v0.10 a SchedulingShard is a second scheduler beside the chart's own, and no
    scheduler knows of usage over time; before v0.12 KAI reads Kueue's topologies, not its own.
    """
    for kind, since in _SINCE.items():
        used = getattr(kai, kind)
        if used is UNKNOWN or not used:
            continue
        version = known(kai.version, f"the KAI version is known: {kind} come with {since}")
        field = "has_topologies" if kind == "topologies" else "has_shards"
        if version in KAI and not getattr(KAI[str(version)], field):
            pools = kind == "shards" and cluster.pools
            path = at(cluster.path, "pools") if pools else place.at(kind).path
            values = {"since": since, "version": version, "advised": releases.advised(KAI) or since}
            yield Place(kind, f"of {cluster.name}", path).refuse(
                *row("kai-feature", **values, kind=kind)
            )


# What the program sets for a reason, and what an override would bring back.
_UNDONE: Final = {
    "defaultQueue.createDefaultQueue": "makes queues that collide with declared ones",  # K4
    "topologyMigration.enabled": "runs a hook that fails beside Kueue's Topologies",  # K13
    "postCleanup.enabled": "runs a hook that hangs on tainted nodes",  # K14
}


def kais_and_inside(cluster: Cluster) -> Iterable[tuple[tuple[Kai, bool], Place]]:
    """Each KAI, the one inside each team's vCluster too, and whether it is an isolated team's."""
    yield from (((kai, False), place) for kai, place in each_kai(cluster))
    for team in cluster.teams:
        for kai in team.kai:
            yield (kai, team.isolated), of_kai(kai, team.inside)


@mandatory("kai-values", "medium", kais_and_inside)
def kai_values(cluster: Cluster, item: tuple[Kai, bool], place: Place) -> Findings:
    """An isolated team's KAI has values of the allow-list, and none that undo what is handled.

    Whoever writes the values of a team's KAI would decide what runs in its place; and some
    values bring back a hook that the program switched off.
    """
    kai, isolated = item
    values, place = known(kai.values, "its values are known"), place.at("values")
    version = str(kai.version or "")
    found = [
        (key, *row("kai-value-undoes", key=key, why=why))
        for key, why in _UNDONE.items()
        if value_at(values, key) is True
    ]
    if version in KAI or kai.untested:
        found += unread(values, version)
    said = [f"{key}." for key, *_ in found]
    for key, cause, fix in refusals("kai", values, version) if isolated else ():
        again = any(f"{key}.".startswith(above) or above.startswith(f"{key}.") for above in said)
        if cause and not again:
            found.append((key, cause, fix))
    for key, cause, fix in found:
        yield place.at(key).refuse(cause, fix)


@advisory("kai-value-reaches", "low", each_kai)
def kai_value_reaches(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Values that the chart reads and that do not reach KAI's parts.

    From v0.9 through v0.12 global.nodeSelector and global.imagePullSecrets stop at the
    operator: the parts that it makes run anywhere, and pull without credentials.
    """
    release = KAI.get(str(kai.version))
    if release is None or release.operands_get_node_selector or not release.has_operator:
        return  # without an operator the chart makes every part itself
    values = known(kai.values, "its values are known")
    keys = ("nodeSelector", "imagePullSecrets")
    places = [place.at("values", "global", key) for key in keys if get(values, "global", key)]
    if kai.registries:
        places.append(Place("KAI", f"of {cluster.name}", "kai-fleet:registries"))
    for each in places:
        newer = releases.advised(KAI, release.version) or "a newer KAI"
        yield each.warn(*row("kai-value-lost", version=release.version, newer=newer))
