"""What a tenant does in its vCluster, as its administrator, to hold up the platform's updates."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from kubernetes.client.exceptions import ApiException

from tests.attacks.http import Http
from tests.faults.case import Case

Do = Callable[..., None]  # of the tenant's API, and of the case where it reads that

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
QUEUES = "/apis/scheduling.run.ai/v2/queues"
_KAI_HOOKS = f"{ADMISSION}/validatingwebhookconfigurations/kai-queue-validation-v2"
_KAI_HOOK = "queue-controller.kai-scheduler.svc"
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.scheduling.run.ai"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/kai-scheduler/deployments"
_OF_QUEUES = {
    "apiGroups": ["scheduling.run.ai"],
    "apiVersions": ["*"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["queues"],
}
_OF_EVERYTHING = _OF_QUEUES | {"apiGroups": ["*"], "resources": ["*/*"], "operations": ["*"]}
QUEUE = "queue"
# At the end of an update: the team, why it is held up, and the command.
LINE = re.compile(
    r"^team (\S+): (.+)\. Repair it with: (.+), then run the same command again$", re.M
)
STAYS = {"op": "add", "path": "/metadata/finalizers", "value": ["tenant.example/stay"]}


@dataclass(frozen=True)
class Act:
    """`says` is on the team's line at the end of the update; `version`: by another one of KAI it
    shows, else by other quotas.
    """

    name: str
    do: Do
    says: str
    version: bool = False
    sends: str = QUEUE  # what its vCluster refuses from then on


def is_at_work(act: Act, tenant: Http) -> bool:
    """Whether the vCluster holds requests against it: a policy takes a moment."""
    try:
        if act.sends == QUEUE:
            probe = {"metadata": {"labels": {"probe": "x"}}}
            tenant.ask("PATCH", f"{QUEUES}/train", probe, dryRun="All")
        else:
            secrets = "/api/v1/namespaces/kai-scheduler/secrets"
            tenant.post(secrets, {"metadata": {"name": "probe"}}, dryRun="All")
    except ApiException:
        return True
    return False


def _policy(*rules: Any) -> Do:
    def act(tenant: Http, *_: Case) -> None:
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": list(rules)},
            "validations": [{"expression": "false", "message": "no"}],
        }
        name = {"metadata": {"name": "no-queues"}}
        tenant.post(f"{ADMISSION}/validatingadmissionpolicies", name | {"spec": spec})
        bound = {"policyName": "no-queues", "validationActions": ["Deny"]}
        tenant.post(f"{ADMISSION}/validatingadmissionpolicybindings", name | {"spec": bound})

    return act


def _webhook(tenant: Http, *_: Case) -> None:
    """One that nobody answers, of a configuration with another name."""
    hook = {
        "name": "queues.tenant.example",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 1,
        "clientConfig": {"url": "https://127.0.0.1:1/queues"},
        "rules": [_OF_QUEUES],
    }
    body = {"metadata": {"name": "tenants-hooks"}, "webhooks": [hook]}
    tenant.post(f"{ADMISSION}/validatingwebhookconfigurations", body)


def _kais_own_without_a_server(tenant: Http, *_: Case) -> None:
    """On nodes somebody answers until a tenant deletes that; in the sandbox it matches nothing."""
    for item in tenant.items(_DEPLOYMENTS):
        tenant.ask("DELETE", f"{_DEPLOYMENTS}/{item['metadata']['name']}")
    hook = {"name": _KAI_HOOK, "matchConditions": None}
    tenant.ask("PATCH", _KAI_HOOKS, {"webhooks": [hook]})


def _kais_own_with_another_authority(tenant: Http, case: Case) -> None:
    """Who answers is the vCluster's own API server, and the authority is another one's."""
    (cluster,) = yaml.safe_load(case.inside("ml").read_text())["clusters"]
    (other,) = yaml.safe_load(case.inside("research").read_text())["clusters"]
    asked = {
        "service": None,
        "url": f"{cluster['cluster']['server']}/queues",
        "caBundle": other["cluster"]["certificate-authority-data"],
    }
    hook = {"name": _KAI_HOOK, "matchConditions": None, "clientConfig": asked}
    tenant.ask("PATCH", _KAI_HOOKS, {"webhooks": [hook]})


def _no_kind_of_queues(tenant: Http, *_: Case) -> None:
    tenant.ask("DELETE", _CRD)


def _no_secrets(tenant: Http, *_: Case) -> None:
    body = {"metadata": {"name": "nothing"}, "spec": {"hard": {"secrets": "0"}}}
    tenant.post("/api/v1/namespaces/kai-scheduler/resourcequotas", body)


_THEIRS = "ValidatingAdmissionPolicy no-queues in its vCluster refuses it"
ACTS = (
    Act("a policy that refuses queues", _policy(_OF_QUEUES), _THEIRS),
    Act("a policy that refuses everything", _policy(_OF_EVERYTHING), _THEIRS, version=True),
    Act(
        "a webhook that does not answer",
        _webhook,
        "webhook queues.tenant.example of validatingwebhookconfiguration/tenants-hooks",
    ),
    Act("no KAI behind its webhook", _kais_own_without_a_server, f"webhook {_KAI_HOOK} of"),
    Act(
        "another authority in KAI's webhook",
        _kais_own_with_another_authority,
        f"webhook {_KAI_HOOK} of validatingwebhookconfiguration/kai-queue-validation-v2 in its"
        " vCluster is not trusted",
    ),
    Act("no kind of queues", _no_kind_of_queues, "kinds of its KAI are gone"),
    Act(
        "no room for Helm's record",
        _no_secrets,
        "ResourceQuota nothing",
        version=True,
        sends="secret",
    ),
)
