"""No flag, command or variable that weakens the control plane of a vCluster."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

import yaml

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.kube.text import may_name_system
from kai_fleet.values import UNKNOWN, value_at
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import Values, judged

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "One flag of its API server opens a team's Kubernetes to everybody who reaches it, and no other"
    " rule reads flags (T17)."
)
REMEDY = "Drop it. Flags for OIDC, audit logs, feature gates, timeouts and rates may be set."

# The flags that a stack may set.
_READ: Final[Mapping[str, Any]] = yaml.safe_load(
    (files(__package__) / "control_plane_flags.yaml").read_text(encoding="utf-8")
)
_REASONS: Final = tuple((re.compile(flag), reason) for flag, reason in _READ["reasons"].items())


def _pattern(flags: Iterable[str | list[str]]) -> str:
    """One pattern for all; a list in the list is another that it takes over."""
    every = (flag for each in flags for flag in ([each] if isinstance(each, str) else each))
    return "|".join(every)


# The key of each list of flags, what reads it, and the flags that it may have.
FLAGS: Final[Mapping[str, tuple[str, str]]] = {
    key: (each["program"], _pattern(each["flags"])) for key, each in _READ["lists"].items()
}

_GROUPS_PREFIX: Final = "oidc-groups-prefix"
_API_SERVER: Final = "controlPlane.distro.k8s.apiServer.extraArgs"
_COMMANDS: Final = (
    "controlPlane.distro.k8s.apiServer.command",
    "controlPlane.distro.k8s.controllerManager.command",
    "controlPlane.distro.k8s.scheduler.command",
    "controlPlane.distro.k3s.command",
    *(f"controlPlane.statefulSet.{key}" for key in ("command", "args", "workingDir")),
)
_VARIABLES: Final = (
    "controlPlane.statefulSet.env",
    "controlPlane.distro.k8s.env",
    "controlPlane.distro.k3s.env",
    "controlPlane.backingStore.etcd.deploy.statefulSet.env",
    "controlPlane.advanced.konnectivity.agent.extraEnv",
    "deploy.kubeProxy.extraEnv",
)
_HARMLESS: Final = re.compile(r"(?i:(https?|no|all)_proxy)|GOGC|GOMAXPROCS|GOMEMLIMIT|TZ|DEBUG")


def check(cluster: DeclaredCluster) -> Problems:
    """The values of each vCluster, whether it is kept from others or not."""
    for team in cluster.teams:
        yield from judged(team, _judge)


def _judge(team: DeclaredTeam, values: Values) -> Iterator[tuple[str, str]]:
    yield from _flags(values)
    for key in _COMMANDS:
        if value_at(values, key):
            yield (
                key,
                f"has {key}, which runs something else than the control plane; drop it, and write"
                " flags in extraArgs",
            )
    for key in _VARIABLES:
        variables = value_at(values, key)
        if variables is UNKNOWN:
            yield key, ""
        for name in _names(variables):
            if not _HARMLESS.fullmatch(name):
                shown = name if re.fullmatch(r"\w{1,80}", name, re.ASCII) else "another"
                yield (
                    key,
                    f"sets the variable {shown} of the control plane, which may change what it"
                    " trusts and does; drop it. The variables of a proxy and of Go's memory may be"
                    " set",
                )


def _flags(values: Values) -> Iterator[tuple[str, str]]:
    for key, (program, allowed) in FLAGS.items():
        arguments = value_at(values, key)
        if any(it is UNKNOWN for it in (arguments, *_items(arguments))):
            yield key, ""
            continue
        every = list(_read(arguments))
        for name, value in every:
            if why := _refusal(name, value, allowed):
                # Without its value, which may be a secret.
                plain_name = re.fullmatch(r"[a-z0-9.-]{1,80}", name)
                flag = f"--{name}" if plain_name else "something that is no flag"
                yield key, f"gives {program} {flag}, which {why}; drop it"
        # Groups of a provider could be system:masters: it is their prefix that bars it.
        set_to = dict(every)
        if key == _API_SERVER and "oidc-groups-claim" in set_to and not set_to.get(_GROUPS_PREFIX):
            yield (
                key,
                f"gives {program} --oidc-groups-claim without --oidc-groups-prefix: its provider"
                " could put anybody into system:masters; add --oidc-groups-prefix=oidc:",
            )


def _names(variables: object) -> Iterator[str]:
    if isinstance(variables, Mapping):
        yield from (str(name) for name in variables)
    else:
        for item in _items(variables):
            yield str(item.get("name", "")) if isinstance(item, Mapping) else str(item)


def _items(value: object) -> Sequence[object]:
    """The items of a list, or what stands in its place."""
    if value is None or value is UNKNOWN:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def _read(arguments: object) -> Iterator[tuple[str, str]]:
    """The flags in a list of arguments, in every spelling that a program may take for one, with
    their values: `authorization-mode`, `AlwaysAllow`.

    One or two dashes, `=` or a space or the next item, underscores for dashes, several in one item.
    What belongs to no flag is a flag without a name.
    """
    name: str | None = None
    for token in (token for item in _items(arguments) for token in _tokens(item)):
        if token.startswith("-"):
            if name is not None:
                yield name, ""
            before, equals, value = token.lstrip("-").partition("=")
            name = before.replace("_", "-").lower()
            if equals or not name:
                yield name, value
                name = None
        else:
            yield name or "", token
            name = None
    if name is not None:
        yield name, ""


def _tokens(item: object) -> list[str]:
    """The words of an item; a value with spaces in it stays with its flag."""
    text = item if isinstance(item, str) else repr(item)
    words = [word.strip("\"'") for word in text.split()]
    tokens: list[str] = []
    for n, word in enumerate(words):
        if n == 0 or word.startswith("-") or (n == 1 and "=" not in tokens[0]):
            tokens.append(word)
    return tokens


def _refusal(name: str, value: str, allowed: str) -> str | None:
    """Why a flag is refused; None where it may be set."""
    if not re.fullmatch(allowed, name):
        reason = next((why for pattern, why in _REASONS if pattern.fullmatch(name)), None)
        return reason or "is none of those that are known to open nothing"
    if name in ("oidc-username-prefix", _GROUPS_PREFIX) and may_name_system(value):
        return "lets a provider of identities name Kubernetes' own accounts; write oidc:"
    if name == "tls-min-version" and value not in ("VersionTLS12", "VersionTLS13"):
        return "allows encryption that is broken; write VersionTLS12 or VersionTLS13"
    return None
