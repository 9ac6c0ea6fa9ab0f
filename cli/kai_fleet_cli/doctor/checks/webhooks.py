"""Checks of webhooks that cannot answer: those of KAI, and those of others.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kai_fleet.values import value_at
from kai_fleet_cli.doctor.faults import NAME, NAMES, Affected, Fault, Faults
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_usage.keys import KAI_NAMESPACE

# Resources that an update creates, or that controllers create for it. "*" matches all resources.
_CREATED_RESOURCES = frozenset(
    {
        "*",
        "*/*",
        "clusterrolebindings",
        "clusterroles",
        "configmaps",
        "customresourcedefinitions",
        "daemonsets",
        "deployments",
        "jobs",
        "namespaces",
        "networkpolicies",
        "persistentvolumeclaims",
        "pods",
        "priorityclasses",
        "replicasets",
        "resourcequotas",
        "rolebindings",
        "roles",
        "runtimeclasses",
        "secrets",
        "serviceaccounts",
        "services",
        "statefulsets",
    }
)
_WEBHOOK_CONFIGURATIONS = (
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
)
_NamespaceAndName = tuple[str | None, str | None]


class _Webhook(NamedTuple):
    """A webhook of a configuration.

    `resource` is the configuration's kind in lower case, `configuration` its name, `fields` the
    webhook as in the API. A property raises one of MALFORMED if they are malformed.
    """

    resource: str
    configuration: str
    fields: Mapping[str, Any]

    @property
    def namespace(self) -> str | None:
        """Namespace of its Service; None if it calls a URL."""
        namespace: str | None = value_at(self.fields, "clientConfig.service.namespace")
        return namespace

    @property
    def service(self) -> str:
        """Name of its Service; the text `None` if it calls a URL."""
        return str(value_at(self.fields, "clientConfig.service.name"))

    @property
    def judged_resources(self) -> set[str]:
        """The resources that its rules match, plurals as `pods`, with `*` for all, of any group."""
        resources = set[str]()
        for rule in self.fields.get("rules") or []:
            resources.update(map(str, rule.get("resources") or []))
        return resources

    @property
    def refused(self) -> str:
        """What is refused if it does not answer, in words; `requests` without rules."""
        return " and ".join(sorted(self.judged_resources)) or "requests"

    @property
    def may_refuse(self) -> bool:
        """Whether requests are refused if its Service does not answer.

        Not if it calls a URL, ignores failures, or has the match condition `false`.
        """
        conditions = self.fields.get("matchConditions") or []
        if any(condition.get("expression") == "false" for condition in conditions):
            return False
        return bool(self.namespace and self.fields.get("failurePolicy", "Fail") == "Fail")


def webhooks(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield webhooks that cannot answer, so that what they judge is refused.

    A webhook is KAI's if its Service is in KAI's namespace. One that has no certificate authority
    cannot answer either. Those of others are warnings, and only if they judge resources that an
    update creates; their authority does not count.
    """
    answering = set(_answering_services(cluster))
    for webhook in _webhooks(cluster):
        is_of_kai = webhook.namespace == KAI_NAMESPACE
        if not webhook.may_refuse:
            continue
        if not is_of_kai and webhook.judged_resources.isdisjoint(_CREATED_RESOURCES):
            continue
        is_there = cluster.find("services", webhook.service, webhook.namespace) is not None
        is_answered = (webhook.namespace, webhook.service) in answering
        if is_of_kai:
            yield from _own_webhook(cluster, webhook, is_there=is_there, is_answered=is_answered)
        elif not (is_there and is_answered):
            yield _webhook_of_others(cluster, webhook)


def _webhooks(cluster: Cluster) -> Iterator[_Webhook]:
    """Yield all webhooks, validating ones first."""
    for resource in _WEBHOOK_CONFIGURATIONS:
        for configuration in cluster.all(resource):
            for fields in configuration.get("webhooks") or []:
                yield _Webhook(resource.removesuffix("s"), configuration.name, fields)


def _answering_services(cluster: Cluster) -> Iterator[_NamespaceAndName]:
    """Yield namespace and name of a Service for each of its ready endpoints.

    An endpoint that does not say whether it is ready counts as ready.
    """
    for piece in cluster.all("endpointslices"):
        service = (piece.namespace, piece.labels.get("kubernetes.io/service-name"))
        for endpoint in piece.get("endpoints") or []:
            conditions = endpoint.get("conditions") or {}
            if conditions.get("ready", True):
                yield service


def _own_webhook(
    cluster: Cluster, webhook: _Webhook, *, is_there: bool, is_answered: bool
) -> Faults:
    """Yield a webhook of KAI whose Service is absent, or silent, or that has no authority.

    Only the first of these.

    `is_there`: its Service exists. `is_answered`: the Service has a ready endpoint.
    """
    subject = Affected(cluster, "webhook", webhook.configuration)
    if not is_there:
        yield subject.broken(
            f"its Service {webhook.service} is not there, so {webhook.refused} are refused: an"
            " uninstalled KAI left it",
            cluster.command(f"delete {webhook.resource} {NAMES}"),
            ", or ",
            cluster.update_command,
            " where this KAI is declared",
        )
    elif not is_answered:
        yield subject.broken(
            f"nothing answers for its Service {webhook.service}, so {webhook.refused} are refused",
            "look with: ",
            cluster.command(f"-n {KAI_NAMESPACE} get deployments,endpoints"),
        )
    elif not value_at(webhook.fields, "clientConfig.caBundle"):
        yield subject.broken(
            f"it has no certificate authority, so {webhook.refused} are refused: KAI's"
            " installation did not end",
            cluster.update_command,
            "; it continues from there",
        )


def _webhook_of_others(cluster: Cluster, webhook: _Webhook) -> Fault:
    """Return the warning for a webhook of others whose Service is absent or silent."""
    space = webhook.namespace
    return Affected(cluster, "webhook", webhook.configuration).warning(
        f"nothing answers for {webhook.fields.get('name')}, which is not KAI's, at its Service"
        f" {webhook.service} of namespace {space}, so {webhook.refused} are refused",
        "have its owner repair it: ",
        # Kubernetes takes any text as the namespace of a Service, and tenants write webhooks.
        cluster.command(f"-n {shlex.quote(str(space))} get services,endpointslices,pods"),
        ", or ",
        cluster.command(f"get {webhook.resource} {NAME}"),
        " for the namespaces that it is asked about",
    )
