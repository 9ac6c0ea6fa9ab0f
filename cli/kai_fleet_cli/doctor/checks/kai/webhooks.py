"""KAI's webhooks: each has somebody who answers. Else what it is asked is refused (K10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kai_fleet.kai.keys import KAI_NAMESPACE
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import Object, labels_of, name_of, namespace_of

NAME = "webhooks"
_KINDS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
_SERVICE = "kubernetes.io/service-name"


def check(look: Snapshot) -> Iterator[Finding]:
    """Every webhook that is served from KAI's namespace."""
    for cluster in look.clusters:
        ours = [
            (kind, item, hook)
            for kind in _KINDS
            for item in cluster.all(kind)
            for hook in item.get("webhooks") or []
            if service(hook).get("namespace") == KAI_NAMESPACE
        ]
        found = [one for kind, item, hook in ours for one in _judge(cluster, kind, item, hook)]
        yield from found
        if ours and not found:
            yield cluster.well(NAME, f"{len(ours)} webhooks of KAI")


def service(hook: Mapping[str, Any]) -> Mapping[str, Any]:
    """The service that answers for a webhook."""
    return (hook.get("clientConfig") or {}).get("service") or {}


def asleep(hook: Mapping[str, Any]) -> bool:
    """Whether no request ever comes to it: one of its conditions never holds."""
    return any(rule.get("expression") == "false" for rule in hook.get("matchConditions") or [])


def _judge(
    cluster: ClusterState, kind: str, item: Object, hook: Mapping[str, Any]
) -> Iterator[Finding]:
    name = str(service(hook).get("name"))
    if asleep(hook):
        return
    remove = f"`{cluster.kubectl} delete {kind.removesuffix('s')} {name_of(item)}`"
    what = _what(hook)
    if hook.get("failurePolicy", "Fail") != "Fail":
        return  # without an answer its requests pass
    if cluster.named("services", name, KAI_NAMESPACE) is None:
        yield cluster.broken(
            NAME,
            f"webhook {hook['name']} of {name_of(item)}",
            f"its service {name} is not there, so every {what} is refused: an uninstalled KAI left"
            " it behind",
            f"{remove}, or {cluster.update} where this KAI is wanted",
        )
    elif "endpointslices" not in cluster.unreadable and not _answers(cluster, name):
        yield cluster.broken(
            NAME,
            f"webhook {hook['name']} of {name_of(item)}",
            f"nobody answers for its service {name}, so every {what} is refused",
            f"look with: `{cluster.kubectl} -n {KAI_NAMESPACE} get deployments,endpoints`",
        )
    elif not (hook.get("clientConfig") or {}).get("caBundle"):
        yield cluster.broken(
            NAME,
            f"webhook {hook['name']} of {name_of(item)}",
            f"it has no certificate authority, so every {what} is refused (x509: unknown"
            " authority): KAI's installation did not end",
            f"{cluster.update}; it goes on from there",
        )


def _what(hook: Mapping[str, Any]) -> str:
    kinds = {str(kind) for rule in hook.get("rules") or [] for kind in rule.get("resources") or []}
    return " and ".join(sorted(kinds)) or "request"


def _answers(cluster: ClusterState, name: str) -> bool:
    return any(
        (endpoint.get("conditions") or {}).get("ready", True)
        for piece in cluster.all("endpointslices")
        if namespace_of(piece) == KAI_NAMESPACE and labels_of(piece).get(_SERVICE) == name
        for endpoint in piece.get("endpoints") or []
    )
