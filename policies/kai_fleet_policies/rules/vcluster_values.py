"""The rule about the values of vCluster's chart."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kai_fleet.releases.allowed_values import READ, Refusal, refusals
from kai_fleet.values import UNKNOWN, Maybe, get, items, pairs, value_at
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.rules.rule import Findings, Subject, each_vcluster, mandatory, require_known

_READ: Mapping[str, Any] = READ["every"]
_HARMLESS_FLAGS = re.compile("|".join(_READ["flags"]))
_HARMLESS_VARIABLES = re.compile(_READ["names"])


@mandatory("vcluster-values", "critical", each_vcluster)
def vcluster_values(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """An isolated team sets only values of the allow-list, others none that open or break vCluster.

    Whoever writes the values of a vCluster would decide what it may do on the host, to all
    teams. One flag of its API server opens a team's Kubernetes to everybody who reaches it. Keys
    of paid tiers make the control plane crash without a licence; the vendor guide's podgroups sync
    does so in any case.
    """
    # What is at or below a key of the allow-list's refusals is found once. An UNKNOWN value leaves
    # its key undecided if the team is isolated; one of flags, variables or switches leaves all so.
    values = require_known(team.values, "its values are known")
    wrong = list(refusals("vcluster", values)) if team.isolated else []
    reported = tuple(f"{key}." for key, _, _ in wrong)
    for other in [*_programs(values), *_broken(team, values)]:
        if not f"{other[0]}.".startswith(reported):
            wrong.append(other)
    for key, cause, fix in wrong:
        value = subject.at("values", key)
        if cause:
            yield value.refuse(cause, fix)
        else:
            yield value.undecided(f"{key} is known")


def _programs(values: object, above: str = "") -> Iterator[Refusal]:
    """Values that change what runs as the control plane: commands, variables and flags.

    `above` is the key of `values`, "" for all values of the chart. What is UNKNOWN below another
    key is left out.

    Raises:
        UnknownValueError: A list of variables or of flags is not known.
    """
    for name, value in pairs(values).items():
        key = f"{above}.{name}".lstrip(".")
        if name in _READ["programs"] and value:
            yield key, f"has {key}, which runs something else than the control plane", "drop it"
        elif name in _READ["variables"]:
            if not _are_harmless(require_known(value, f"{key} is known")):
                yield (
                    key,
                    f"sets variables of the control plane in {key}, which may change what it does",
                    "drop it; those of a proxy and of Go's memory may be set",
                )
        elif name == "extraArgs":
            for cause in _wrong_flags(value, key):
                yield key, cause, "drop it"
        else:
            yield from _programs(value, key)


def _are_harmless(variables: object) -> bool:
    """Whether all variables of the control plane may be set, from a mapping or a list.

    A mapping has them by name, a list as mappings with `name`. A name that is UNKNOWN may not be
    set. Anything else has no variables.
    """
    names = [*pairs(variables), *(get(entry, "name") for entry in items(variables))]
    return all(_HARMLESS_VARIABLES.fullmatch(str(name)) for name in names)


def _wrong_flags(arguments: object, key: str) -> Iterator[str]:
    """Causes to refuse a list of flags, without their values, which may be secrets.

    `key` is that of the list. The causes are predicates, before "; drop it".

    Raises:
        UnknownValueError: One of the arguments is not known.
    """
    flags = _flags(arguments, key)
    for name, value in flags.items():
        if not name or not _HARMLESS_FLAGS.fullmatch(name):
            is_plain = re.fullmatch(r"[a-z0-9.-]{1,80}", name)
            flag = f"--{name}" if is_plain else "something that is no flag"
            yield f"gives {flag} in {key}, which is none of those that are known to open nothing"
        elif name in ("oidc-username-prefix", "oidc-groups-prefix") and _opens_system(value):
            yield f"gives --{name}, which lets an identity provider name Kubernetes' own accounts"
    # A group of a provider could be system:masters: the prefix of groups bars that.
    if "oidc-groups-claim" in flags and not flags.get("oidc-groups-prefix"):
        yield (
            "gives --oidc-groups-claim without --oidc-groups-prefix=oidc:, so its provider could"
            " put anybody into system:masters"
        )


def _opens_system(prefix: str) -> bool:
    """Whether names with this prefix can begin with `system:`.

    `-` means no prefix, and with `sy` a provider's `stem:masters` is Kubernetes' group.
    """
    if prefix in ("", "-"):
        return True
    return "system:".startswith(prefix) or prefix.startswith("system")


def _flags(arguments: object, key: str) -> dict[str, str]:
    """The flags in an argument or a list of them, by name with their last value.

    Flags are read in every form that a program might take: with one or two dashes, the value behind
    `=`, a space or in the next argument, underscores for dashes, several flags in one argument. A
    value without a flag is one of the flag "". Raises UnknownValueError if an argument is UNKNOWN.
    """
    given = arguments if isinstance(arguments, list | tuple) else [arguments]
    require_known(UNKNOWN if UNKNOWN in given else None, f"{key} is known")
    words = " ".join(str(argument) for argument in given if argument).split()
    flags: dict[str, str] = {}
    name = ""  # of the flag whose value is the next word
    for word in words:
        word = word.strip("\"'")
        if not word.startswith("-"):
            flags[name] = word
            name = ""
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-").lower()
        flags[name] = value
        if equals:
            name = ""
    return flags


def _broken(team: TeamModel, values: Mapping[str, object]) -> Iterator[Refusal]:
    """Values with which a vCluster does not start: a sync of podgroups, else what needs a licence.

    With a licence only the former counts. Raises UnknownValueError if a switch is UNKNOWN.
    """
    synced = "sync.fromHost.customResources"
    if "podgroups" in str(value_at(values, synced)):
        yield (
            synced,
            "syncs podgroups from the host: the vCluster then does not start",
            "drop it: KAI needs no such sync",
        )
        return
    if team.licensed:
        return
    for key in (*_READ["paid"], *_READ["free"]):
        if require_known(_is_on(value_at(values, key)), f"{key} is known"):
            yield (
                key,
                f"has {key}, which needs a vCluster licence",
                "drop it, or write licensed: true beside values if you have a licence",
            )


def _is_on(section: Maybe[object]) -> Maybe[bool]:
    """Whether a feature's section or switch turns it on.

    A section without `enabled` turns it on unless it is empty. UNKNOWN if the section or its
    `enabled` is.
    """
    switch = section
    if isinstance(section, Mapping):
        switch = section.get("enabled", True) if section else False
    if switch is UNKNOWN:
        return UNKNOWN
    return switch not in (None, False)
