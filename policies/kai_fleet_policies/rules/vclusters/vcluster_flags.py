"""No flag, command or variable that weakens the control plane of a vCluster."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet_policies.rules.vclusters import judged, value_of
from kai_fleet_policies.vcluster_tables.control_plane_flags import (
    FLAGS,
    Flag,
    flags,
    refusal,
    unprefixed_groups,
)
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.rules.problem import Level, Problem, Severity
from kubectl_fleet.wording import MASK

NAME = "vcluster-flags"
LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "One flag of its API server opens a team's Kubernetes to everybody who reaches it, and no other"
    " rule reads flags (T17)."
)
REMEDY = "Drop it. Flags for OIDC, audit logs, feature gates, timeouts and rates may be set."

_API_SERVER: Final = "controlPlane.distro.k8s.apiServer.extraArgs"
_COMMANDS: Final = (
    *(
        f"controlPlane.distro.k8s.{part}.command"
        for part in ("apiServer", "controllerManager", "scheduler")
    ),
    "controlPlane.distro.k3s.command",
    "controlPlane.statefulSet.command",
    "controlPlane.statefulSet.args",
    "controlPlane.statefulSet.workingDir",
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


def check(cluster: DeclaredCluster) -> Iterator[Problem]:
    """The values of each vCluster, whether it is kept from others or not."""
    for team in cluster.virtual_clusters:
        yield from judged(team, _judge)


def _judge(team: DeclaredTeam, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    yield from _flags(values)
    yield from _programs(values)


def _flags(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, (program, allowed) in FLAGS.items():
        arguments = value_of(values, key)
        if _later(arguments) or (isinstance(arguments, list) and any(map(_later, arguments))):
            yield key, ""
            continue
        every = list(flags(arguments))
        for flag in every:
            if why := refusal(flag, allowed):
                yield key, f"gives {program} {_called(flag)}, which {why}; drop it"
        if key == _API_SERVER and unprefixed_groups({flag.name: flag.value for flag in every}):
            yield (
                key,
                f"gives {program} --oidc-groups-claim without --oidc-groups-prefix: its provider"
                " could put anybody into system:masters; add --oidc-groups-prefix=oidc:",
            )


def _later(value: object) -> bool:
    """Whether only the update knows a value, or it is encrypted and not decrypted here."""
    return value is UNKNOWN or value == MASK


def _called(flag: Flag) -> str:
    """A flag without its value, which may be a secret."""
    plain_name = re.fullmatch(r"[a-z0-9.-]{1,80}", flag.name)
    return f"--{flag.name}" if plain_name else "something that is no flag"


def _programs(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key in _COMMANDS:
        if value_of(values, key):
            yield (
                key,
                f"has {key}, which runs something else than the control plane; drop it, and write"
                " flags in extraArgs",
            )
    for key in _VARIABLES:
        variables = value_of(values, key)
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


def _names(variables: object) -> Iterator[str]:
    if isinstance(variables, Mapping):
        yield from (str(name) for name in variables)
    elif variables not in (None, UNKNOWN):
        for item in variables if isinstance(variables, list | tuple) else [variables]:
            yield str(item.get("name", "")) if isinstance(item, Mapping) else str(item)
