"""KAI's webhooks: each has somebody who answers. Else what it is asked is refused (K10)."""

from collections.abc import Mapping
from typing import Any

from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.values import value_at
from kai_fleet.wording import counted
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot

_KINDS = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
_SERVICE = "kubernetes.io/service-name"


def check(snapshot: Snapshot) -> Findings:
    """Every webhook that is served from KAI's namespace."""
    for cluster in snapshot.clusters:
        hooks = [
            (kind, item.name, hook)
            for kind in _KINDS
            for item in cluster.all(f"{kind}s")
            for hook in item.get("webhooks") or []
            if value_at(hook, "clientConfig.service.namespace") == KAI_NAMESPACE
        ]
        if hooks:
            problems = (finding for each in hooks for finding in _unanswered(cluster, *each))
            yield from cluster.or_well(problems, f"{counted(len(hooks), 'webhook')} of KAI")


def _never_refuses(hook: Mapping[str, Any]) -> bool:
    """Whether its requests pass without an answer, or none ever comes to it."""
    conditions = hook.get("matchConditions") or []
    never_asked = any(rule.get("expression") == "false" for rule in conditions)
    return never_asked or hook.get("failurePolicy", "Fail") != "Fail"


def _unanswered(cluster: ClusterState, kind: str, name: str, hook: Mapping[str, Any]) -> Findings:
    if _never_refuses(hook):
        return
    service = str(value_at(hook, "clientConfig.service.name"))
    subject = f"webhook {hook['name']} of {name}"
    kinds = {str(it) for rule in hook.get("rules") or [] for it in rule.get("resources") or []}
    refused = f"every {' and '.join(sorted(kinds)) or 'request'} is refused"
    if cluster.named("services", service, KAI_NAMESPACE) is None:
        yield cluster.broken(
            subject,
            f"its service {service} is not there, so {refused}: an uninstalled KAI left it behind",
            f"`{cluster.kubectl} delete {kind} {name}`, or {cluster.update} where this KAI is"
            " wanted",
        )
    elif "endpointslices" not in cluster.unreadable and not _answers(cluster, service):
        yield cluster.broken(
            subject,
            f"nobody answers for its service {service}, so {refused}",
            f"look with: `{cluster.kubectl} -n {KAI_NAMESPACE} get deployments,endpoints`",
        )
    elif not value_at(hook, "clientConfig.caBundle"):
        yield cluster.broken(
            subject,
            f"it has no certificate authority, so {refused} (x509: unknown authority): KAI's"
            " installation did not end",
            f"{cluster.update}; it goes on from there",
        )


def _answers(cluster: ClusterState, service: str) -> bool:
    return any(
        (endpoint.get("conditions") or {}).get("ready", True)
        for piece in cluster.within("endpointslices", KAI_NAMESPACE)
        if piece.labels.get(_SERVICE) == service
        for endpoint in piece.get("endpoints") or []
    )
