"""What a tenant does in its vCluster, as its administrator, to hold up the platform's updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.attacks.http import Http

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = "/apis/scheduling.run.ai/v2/queues"
KAI = "/apis/apps/v1/namespaces/kai-scheduler"
RULE = {
    "apiGroups": ["scheduling.run.ai"],
    "apiVersions": ["*"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["queues"],
}
EVERYTHING = RULE | {"apiGroups": ["*"], "resources": ["*/*"], "operations": ["*"]}


@dataclass(frozen=True)
class TenantsAct:
    """`says` is in the last lines of the update, beside the team and the command."""

    name: str
    act: Callable[[Http], None]
    says: str
    slow: bool = True


def policy(rule: dict[str, Any], message: str = "no") -> Callable[[Http], None]:
    def act(tenant: Http) -> None:
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": message}],
        }
        name = {"metadata": {"name": "no-queues"}}
        tenant.post(f"{ADMISSION}/validatingadmissionpolicies", name | {"spec": spec})
        bound = {"policyName": "no-queues", "validationActions": ["Deny"]}
        tenant.post(f"{ADMISSION}/validatingadmissionpolicybindings", name | {"spec": bound})

    return act


def webhook(kind: str, rule: dict[str, Any], **client: Any) -> Callable[[Http], None]:
    """One that nobody answers, of a configuration with another name."""

    def act(tenant: Http) -> None:
        hook = {
            "name": "queues.tenant.example",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 1,
            "clientConfig": client or {"url": "https://127.0.0.1:1/queues"},
            "rules": [rule],
        }
        body = {"metadata": {"name": "tenants-hooks"}, "webhooks": [hook]}
        tenant.post(f"{ADMISSION}/{kind}webhookconfigurations", body)

    return act


def finalizer(path: str) -> Callable[[Http], None]:
    def act(tenant: Http) -> None:
        add = {"op": "add", "path": "/metadata/finalizers", "value": ["tenant.example/stay"]}
        tenant.ask("PATCH", path, [add])

    return act


ACTS = (
    TenantsAct(
        "a policy that refuses queues",
        policy(RULE),
        "ValidatingAdmissionPolicy no-queues",
        slow=False,
    ),
    TenantsAct(
        "a policy that cannot be evaluated",
        policy(RULE, "x" * 9000),
        "ValidatingAdmissionPolicy no-queues",
    ),
    TenantsAct(
        "a webhook that does not answer",
        webhook("validating", RULE),
        "queues.tenant.example of validatingwebhookconfiguration tenants-hooks",
    ),
    TenantsAct(
        "a webhook that changes queues and does not answer",
        webhook("mutating", RULE),
        "queues.tenant.example of mutatingwebhookconfiguration tenants-hooks",
    ),
)
