"""Rules about chart values: what a team may set of vCluster's and KAI's charts, and what breaks."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.foreign_text import may_name_system
from kai_fleet.releases.allowed_values import READ, refusals
from kai_fleet.values import UNKNOWN, get, items, pairs, value_at
from kai_fleet_policies.model.cluster import Cluster, Kai, Team
from kai_fleet_policies.rules.places import VCLUSTERS, Place, kais, of_kai, of_vcluster
from kai_fleet_policies.rules.rule import (
    Findings,
    UnknownValueError,
    advisory,
    known,
    mandatory,
)

# What the program sets for a reason, and what an override would bring back.
_UNDONE: Final = {
    "defaultQueue.createDefaultQueue": "makes queues that collide with declared ones",  # K4
    "topologyMigration.enabled": "runs a hook that fails beside Kueue's Topologies",  # K13
    "postCleanup.enabled": "runs a hook that hangs on tainted nodes",  # K14
}


def _kais(cluster: Cluster) -> Iterable[tuple[tuple[Kai, bool], Place]]:
    """Each KAI, the one inside each team's vCluster too, and whether it is an isolated team's."""
    yield from (((kai, False), place) for kai, place in kais(cluster))
    for team in cluster.teams:
        for kai in team.kai:
            yield (kai, team.isolated), of_kai(kai, team.inside)


@mandatory("kai-values", "medium", _kais)
def kai_values(cluster: Cluster, item: tuple[Kai, bool], place: Place) -> Findings:
    """An isolated team's KAI has values of the allow-list, and none that undo what is handled.

    Whoever writes the values of a team's KAI would decide what runs in its place; and some
    values bring back a hook that the program switched off.
    """
    kai, isolated = item
    values, place = known(kai.values, "its values are known"), place.at("values")
    for key, why in _UNDONE.items():
        if value_at(values, key) is True:
            yield place.at(key).refuse(f"has {key}: true, which {why}", "drop it")
    for key, cause, fix in refusals("kai", values) if isolated else ():
        if key not in _UNDONE and cause:
            yield place.at(key).refuse(cause, fix)


@advisory("kai-value-reaches", "low", kais)
def kai_value_reaches(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Values that the chart reads and that do not reach KAI's parts.

    From v0.9 through v0.12 global.nodeSelector and global.imagePullSecrets stop at the
    operator: the parts that it makes run anywhere, and pull without credentials.
    """
    release = releases.KAI.get(str(kai.version))
    if release is None or release.operands_get_node_selector or not release.has_operator:
        return  # without an operator the chart makes every part itself
    to = releases.advised(releases.KAI, release.version)
    fix = f"move to {to} for it to reach them" if to else "drop it"
    for key in ("nodeSelector", "imagePullSecrets"):
        if get(known(kai.values, "its values are known"), "global", key):
            yield place.at("values", "global", key).warn(
                f"sets global.{key}, which {release.version} gives to its operator and not to the"
                " parts that the operator makes",
                fix,
            )
    if kai.registries:
        yield Place("KAI", f"of {cluster.name}", "kai-fleet:registries").warn(
            f"reaches KAI's operator, and in {release.version} not the parts that it makes", fix
        )


_EVERY: Final[Mapping[str, Any]] = READ["every"]
_FLAGS: Final = re.compile("|".join(_EVERY["flags"]))
_VARIABLES: Final = re.compile(_EVERY["names"])
_FREE_TIER: Final = ", free up to 64 CPUs and 32 GPUs where vCluster Platform is connected"


@mandatory("vcluster-values", "critical", VCLUSTERS)
def vcluster_values(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Of an isolated team only values of the allow-list, of others none that open or break it.

    Whoever writes the values of a vCluster would decide what it may do on the host, to all
    teams. One flag of its API server opens a team's Kubernetes to everybody who reaches it. Keys
    of paid tiers make the control plane crash without a licence; the vendor guide's podgroups sync
    does so in any case.
    """
    values = known(team.values, "its values are known")
    refused = list(refusals("vcluster", values)) if team.isolated else []
    above = tuple(f"{key}." for key, *_ in refused)
    more = (*_programs(values, ""), *_broken(team, values))
    for key, cause, fix in (
        *refused,
        *(each for each in more if not f"{each[0]}.".startswith(above)),
    ):
        place = of_vcluster(team, "values", key)
        yield place.refuse(cause, fix) if cause else place.undecided(f"{key} is known")


def _programs(value: object, above: str) -> Iterator[tuple[str, str, str]]:
    """What runs as the control plane: commands, variables and flags."""
    for name, below in pairs(value).items():
        key = f"{above}.{name}" if above else str(name)
        if name in _EVERY["programs"] and below:
            cause = f"has {key}, which runs something else than the control plane"
            yield key, cause, "drop it"
        elif name in _EVERY["variables"]:
            below = known(below, f"{key} is known")
            variables = (*pairs(below), *(get(entry, "name") for entry in items(below)))
            if not all(_VARIABLES.fullmatch(str(variable)) for variable in variables):
                cause = (
                    f"sets variables of the control plane in {key}, which may change what it does"
                )
                yield key, cause, "drop it; those of a proxy and of Go's memory may be set"
        elif name == "extraArgs":
            for cause in _flags(below, key):
                yield key, cause, "drop it"
        else:
            yield from _programs(below, key)


def _flags(arguments: object, key: str) -> Iterator[str]:
    """What is wrong with a list of flags, without their values, which may be secrets.

    One or two dashes, `=` or a space or the next item, underscores for dashes, several in one item.
    """
    every = arguments if isinstance(arguments, list | tuple) else [arguments]
    if UNKNOWN in every:
        raise UnknownValueError(f"{key} is known")
    tokens = " ".join(map(str, filter(None, every))).split()
    flags: dict[str, str] = {}
    name = ""
    for token in (token.strip("\"'") for token in tokens):
        if token.startswith("-"):
            name, _, value = token.lstrip("-").partition("=")
            name = name.replace("_", "-").lower()
            flags[name] = value
        else:
            flags[name] = token
        name = name if token.startswith("-") and "=" not in token else ""
    for name, value in flags.items():
        if not name or not _FLAGS.fullmatch(name):
            plain = re.fullmatch(r"[a-z0-9.-]{1,80}", name)
            flag = f"--{name}" if plain else "something that is no flag"
            yield f"gives {flag} in {key}, which is none of those that are known to open nothing"
        elif name in ("oidc-username-prefix", "oidc-groups-prefix") and may_name_system(value):
            yield f"gives --{name}, which lets an identity provider name Kubernetes' own accounts"
    # Groups of a provider could be system:masters: it is their prefix that bars it.
    if "oidc-groups-claim" in flags and not flags.get("oidc-groups-prefix"):
        yield (
            "gives --oidc-groups-claim without --oidc-groups-prefix: its provider could put anybody"
            " into system:masters; add --oidc-groups-prefix=oidc: or"
        )


def _broken(team: Team, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What keeps a vCluster from starting, or pods from being placed."""
    synced = "sync.fromHost.customResources"
    if "podgroups" in str(value_at(values, synced)):
        cause = "syncs podgroups from the host: the vCluster then does not start"
        yield synced, cause, "drop it: KAI needs no such sync"
        return
    for key in () if team.licensed else (*_EVERY["paid"], *_EVERY["free"]):
        value = value_at(values, key)
        on = value.get("enabled", True) if isinstance(value, Mapping) and value else value
        if on not in (None, False) and value != {}:
            free = _FREE_TIER if key in _EVERY["free"] else ""
            cause = f"has {key}, which needs a vCluster licence{free}"
            yield key, cause, "drop it, or write licensed: true beside values if you have one"
    image = "controlPlane.statefulSet.image.repository"
    if not team.licensed and "vcluster-pro" in str(value_at(values, image)):
        yield image, "takes the Pro image, which needs a licence", "drop it"
