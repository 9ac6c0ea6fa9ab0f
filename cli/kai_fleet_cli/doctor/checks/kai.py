"""KAI: its parts are there, rolled out and of the declared version; its webhooks are answered."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kai_fleet.kube.objects import KubeObject
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.causes import Fault, explain, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot

_WEBHOOKS: Final = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")


def make_again(cluster: Cluster) -> str:
    """What makes a part of KAI again."""
    apply = cluster.made_again("kai-scheduler", KAI_NAMESPACE)
    return apply if cluster.all("releases") else cluster.update


def parts(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """The deployments of its version, what its operator reports, and hooks of Helm that wait."""
    release = cluster.kai
    there = {item.name: item for item in cluster.within("deployments", KAI_NAMESPACE)}
    if release is None or not there:
        yield fault("kai-absent", cluster, release.version if release else "")
        return
    again = make_again(cluster)
    for name in release.deployments:
        item = there.get(name)
        if item is None:
            yield fault("part-absent", cluster, name, again=again)
            continue
        if item.spec.get("replicas", 1) == 0:
            yield fault("part-scaled-to-0", cluster, name)
        elif not item.rolled_out:
            yield fault("part-not-ready", cluster, name, cause=_not_ready(cluster, item))
        if item.image_tag not in (None, release.version):
            runs = {"runs": item.image_tag, "declared": release.version, "check": "kai-version"}
            yield fault("part-version", cluster, name, **runs)
    for what in release.ready_conditions:
        kind, name = what.split("/")
        item = cluster.named(kind.partition(".")[0], name)
        if item is None:
            yield fault("condition-absent", cluster, what, again=again)
        elif not item.is_true("Ready"):
            message = item.condition("Ready").get("message") or "its operator has not said Ready"
            yield fault("condition-not-ready", cluster, what, cause=message)
    for pod in cluster.within("pods", KAI_NAMESPACE):
        job = pod.labels.get("job-name")
        if job and pod.phase == "Pending" and not pod.spec.get("nodeName"):
            yield fault("hook-waits", cluster, job)


def _not_ready(cluster: Cluster, item: KubeObject) -> str:
    selector = value_at(item.spec, "selector.matchLabels") or {}
    for pod in cluster.within("pods", KAI_NAMESPACE):
        if selector.items() <= pod.labels.items():
            texts = cluster.messages_of(pod)
            known = explain(cluster, "pod", pod.name, texts)
            return known.cause if known else next(iter(texts), "nothing gives a reason")
    return "it has no pod"


def webhooks(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Webhooks that KAI's namespace serves: without an answer, what they judge is refused."""
    for plural in _WEBHOOKS:
        for item in cluster.all(plural):
            for hook in item.get("webhooks") or []:
                if value_at(hook, "clientConfig.service.namespace") == KAI_NAMESPACE:
                    yield from _unanswered(cluster, plural, item.name, hook)


def _unanswered(
    cluster: Cluster, plural: str, name: str, hook: Mapping[str, Any]
) -> Iterator[Fault]:
    never = any(each.get("expression") == "false" for each in hook.get("matchConditions") or [])
    if never or hook.get("failurePolicy", "Fail") != "Fail":
        return
    service = str(value_at(hook, "clientConfig.service.name"))
    rules = hook.get("rules") or []
    kinds = {str(kind) for rule in rules for kind in rule.get("resources") or []}
    values = {
        "service": service,
        "plural": plural.removesuffix("s"),
        "refused": " and ".join(sorted(kinds)) or "requests",
    }
    answering = any(
        (endpoint.get("conditions") or {}).get("ready", True)
        for piece in cluster.within("endpointslices", KAI_NAMESPACE)
        if piece.labels.get("kubernetes.io/service-name") == service
        for endpoint in piece.get("endpoints") or []
    )
    if cluster.named("services", service, KAI_NAMESPACE) is None:
        yield fault("webhook-without-service", cluster, name, **values)
    elif not answering and "endpointslices" not in cluster.unreadable:
        yield fault("webhook-unanswered", cluster, name, **values)
    elif not value_at(hook, "clientConfig.caBundle"):
        yield fault("webhook-without-authority", cluster, name, **values)
