"""The flags of a vCluster's control plane that a stack may set, and how flags are spelled.

A list of what is allowed: a flag that a newer Kubernetes brings is refused until its effect has
been judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_LOGS: Final = r"v|vmodule|logging-format|log-json-\S+|log-text-\S+"
_EVERY: Final = rf"{_LOGS}|feature-gates|show-hidden-metrics-for-version"
_CLIENT: Final = r"kube-api-qps|kube-api-burst|leader-elect(-lease-duration|-renew-deadline)?"
_ETCD: Final = (
    r"auto-compaction-(mode|retention)|quota-backend-bytes|snapshot-count|heartbeat-interval"
    r"|election-timeout|max-request-bytes|max-txn-ops|log-level"
)
_KINE: Final = (
    r"datastore-(max-idle-connections|max-open-connections|connection-max-lifetime)"
    r"|slow-sql-threshold|slow-sql-warning-threshold|compact-\S+"
)
_API_SERVER: Final = (
    rf"{_EVERY}|oidc-(issuer-url|client-id|ca-file|username-claim|username-prefix|groups-claim"
    r"|groups-prefix|required-claim|signing-algs)"
    r"|audit-policy-file|audit-log-\S+|event-ttl|runtime-config|tls-min-version"
    r"|max-(mutating-)?requests-inflight|(min-)?request-timeout|enable-priority-and-fairness"
    r"|watch-cache|watch-cache-sizes|default-watch-cache-size|goaway-chance"
    r"|http2-max-streams-per-connection|delete-collection-workers"
    r"|livez-grace-period|shutdown-delay-duration"
    r"|default-(not-ready|unreachable)-toleration-seconds"
)
_CONTROLLERS: Final = (
    rf"{_EVERY}|{_CLIENT}|concurrent-[a-z-]+-syncs|node-monitor-(grace-period|period)"
    r"|node-eviction-rate|secondary-node-eviction-rate|unhealthy-zone-threshold"
    r"|large-cluster-size-threshold|terminated-pod-gc-threshold|horizontal-pod-autoscaler-\S+"
    r"|(namespace|resource-quota|pvclaimbinder|attach-detach-reconcile)-sync-period"
    r"|cluster-signing-duration"
)
_SCHEDULER: Final = rf"{_EVERY}|{_CLIENT}|pod-max-in-unschedulable-pods-duration"

# The key of each list of flags, what reads it, and the flags that it may have.
FLAGS: Final[Mapping[str, tuple[str, str]]] = {
    "controlPlane.distro.k8s.apiServer.extraArgs": ("the API server", _API_SERVER),
    "controlPlane.distro.k8s.controllerManager.extraArgs": ("the controller manager", _CONTROLLERS),
    "controlPlane.distro.k8s.scheduler.extraArgs": ("the scheduler", _SCHEDULER),
    "controlPlane.distro.k3s.extraArgs": ("k3s", "v|vmodule"),
    "controlPlane.backingStore.etcd.deploy.statefulSet.extraArgs": ("etcd", _ETCD),
    "controlPlane.backingStore.etcd.embedded.extraArgs": ("etcd", _ETCD),
    "controlPlane.backingStore.database.embedded.extraArgs": ("kine", _KINE),
    "controlPlane.backingStore.database.external.extraArgs": ("kine", _KINE),
    "controlPlane.advanced.konnectivity.server.extraArgs": ("konnectivity", _LOGS),
    "controlPlane.advanced.konnectivity.agent.extraArgs": ("konnectivity", _LOGS),
    "deploy.kubeProxy.extraArgs": ("kube-proxy", _EVERY),
}
# Why some are not among them; the first pattern that fits says it.
_REASONS: Final = tuple(
    (re.compile(pattern), why)
    for pattern, why in (
        (r"authorization-.*", "decides who may do what, and AlwaysAllow lets everybody"),
        (r"anonymous-auth|insecure-.*|.*allow-all.*", "lets in who says no name"),
        (r"token-auth-file|basic-auth-file", "lets in who knows a word of a file"),
        (r"authentication-.*", "has somebody else say who a user is"),
        (r"client-ca-file|requestheader-.*|.*trusted-ca-file", "has others sign who a user is"),
        (r"(en|dis)able-admission-plugins|admission-.*", "switches checks of new objects off"),
        (r"service-account-.*|api-audiences", "has others sign tokens of service accounts"),
        (r"audit-webhook.*|tracing-.*", "sends every request elsewhere"),
        (r"egress-selector.*|proxy-client-.*|kubelet-.*", "leads the API server's own calls"),
        (r"encryption-provider.*|etcd-.*|storage-.*", "decides where Secrets are, and if in clear"),
        (r"profiling|contention-profiling|debug-.*", "shows the process's memory"),
        (r"(secure|bind|advertise|listen|endpoint|address|port|external).*", "opens it elsewhere"),
        (r"(tls|cert|key|peer|client).*", "has other keys and certificates trusted"),
    )
)


@dataclass(frozen=True)
class Flag:
    """One flag as its program reads it: `authorization-mode`, `AlwaysAllow`."""

    name: str
    value: str


def flags(arguments: object) -> Iterator[Flag]:
    """The flags in a list of arguments, in every spelling that a program may take for one.

    One or two dashes, `=` or a space or the next item, underscores for dashes, several in one item.
    What belongs to no flag is a flag without a name.
    """
    tokens = [token for item in _items(arguments) for token in _tokens(item)]
    name: str | None = None
    for token in tokens:
        if token.startswith("-"):
            if name is not None:
                yield Flag(name, "")
            before, equals, value = token.lstrip("-").partition("=")
            name = before.replace("_", "-").lower()
            if equals or not name:
                yield Flag(name, value)
                name = None
        else:
            yield Flag(name or "", token)
            name = None
    if name is not None:
        yield Flag(name, "")


def refusal(flag: Flag, allowed: str) -> str | None:
    """Why a flag is refused; None where it may be set."""
    if re.fullmatch(allowed, flag.name):
        return _value(flag)
    reason = next((why for pattern, why in _REASONS if pattern.fullmatch(flag.name)), None)
    return reason or "is none of those that are known to open nothing"


def unprefixed_groups(arguments: Mapping[str, str]) -> bool:
    """Whether groups of an OIDC provider could be system:masters: it is their prefix that bars it.

    `arguments` are the API server's flags with their values.
    """
    return "oidc-groups-claim" in arguments and not arguments.get("oidc-groups-prefix")


def _value(flag: Flag) -> str | None:
    prefix = flag.name in ("oidc-username-prefix", "oidc-groups-prefix")
    if prefix and (flag.value in ("", "-") or flag.value.startswith("system")):
        return "lets a provider of identities name Kubernetes' own accounts; write oidc:"
    if flag.name == "tls-min-version" and flag.value not in ("VersionTLS12", "VersionTLS13"):
        return "allows encryption that is broken; write VersionTLS12 or VersionTLS13"
    return None


def _items(arguments: object) -> Iterator[str]:
    if isinstance(arguments, list | tuple):
        for item in arguments:
            yield item if isinstance(item, str) else repr(item)
    elif arguments is not None:
        yield arguments if isinstance(arguments, str) else repr(arguments)


def _tokens(item: str) -> list[str]:
    """The words of an item; a value with spaces in it stays with its flag."""
    words = [word.strip("\"'") for word in item.split()]
    tokens: list[str] = []
    for n, word in enumerate(words):
        if n == 0 or word.startswith("-") or (n == 1 and "=" not in tokens[0]):
            tokens.append(word)
    return tokens
