"""A host with teams in every mode: what a plan declares there, made by the API server itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from kai_fleet_cli.plan.recorder import record
from tests.attacks.http import Http

TEAMS = ("ml", "tight", "dev", "nlp", "mig", "quiet", "open", "vision", "audio", "sim", "config-x")
_TABLE = yaml.safe_load(Path(__file__).with_name("tables").joinpath("hosts.yaml").read_text())
WITH_KAI_INSIDE, WITH_KAI_ON_HOST = _TABLE["with kai inside"], _TABLE["with kai on the host"]
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_GROUPS = {
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "ValidatingAdmissionPolicy": f"{_ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}/validatingadmissionpolicybindings",
}
# What makes up a team's place on the host, and the accounts of team stacks.
_OURS = (
    "kai-fleet:index:TeamNamespace",
    "kai-fleet:index:TeamStackAccess",
    "kai-fleet:index:HostGuards",
)
RBAC = "rbac.authorization.k8s.io"


@dataclass
class Host:
    """The API server as its administrator, and as each of the accounts that may be a tenant's."""

    admin: client.ApiClient
    accounts: dict[str, client.ApiClient] = field(default_factory=dict)

    @classmethod
    def of(cls, kubeconfig: str) -> Host:
        return cls(config.new_client_from_config(kubeconfig))

    def make(self) -> None:
        """Every team's place, its vCluster's account as its own chart makes it, and delegates.

        What the platform gives is less (tests/attacks/test_rights.py): whoever runs a vCluster of
        his own making has the chart's role, and is held by the same bounds.
        """
        for name in ("nvidia", "fast"):
            self.post("RuntimeClass", {"metadata": {"name": name}, "handler": "nvidia"})
        self.post("RuntimeClass", {"metadata": {"name": "kata"}, "handler": "kata"})
        for name, default in (("standard", "true"), ("fast", "false"), ("listed", "false")):
            noted = {"storageclass.kubernetes.io/is-default-class": default}
            metadata = {"name": name, "annotations": noted}
            self.post("StorageClass", {"metadata": metadata, "provisioner": "example.com/disk"})
        for name, value in (("train", 50), ("batch", 1000), ("urgent", 100_000)):
            self.post("PriorityClass", {"metadata": {"name": name}, "value": value})
        for raw in (WITH_KAI_INSIDE, WITH_KAI_ON_HOST):
            self._apply(record("lab", raw))
        for team in TEAMS:
            self._vcluster(team)
        for team in ("vision", "audio"):
            self._sign_in(team, "kai-fleet-team-stacks", f"stack {team}")
            self.delegate(team)

    def _apply(self, resources: Iterable[Any]) -> None:
        declared = [
            (str(resource.type.rsplit(":", 1)[-1]), dict(resource.inputs))
            for resource in resources
            if resource.type.startswith("kubernetes:")
            and any(f"{kind}$" in resource.urn for kind in _OURS)
        ]
        for kind in _GROUPS:
            for found, body in declared:
                if found == kind:
                    self.post(kind, body)

    def post(self, kind: str, body: Mapping[str, Any]) -> None:
        path = _GROUPS[kind].format(body["metadata"].get("namespace", ""))
        try:
            Http(self.admin).post(path, {"kind": kind, **body})
        except ApiException as why:
            if why.status != 409:  # both hosts have the accounts' namespace and the policies
                raise AssertionError(why.body) from why

    def _vcluster(self, team: str) -> None:
        space, name = f"team-{team}", f"vc-{team}"
        there = {"name": name, "namespace": space}
        role = {"apiGroup": RBAC, "kind": "Role", "name": name}
        me = [{"kind": "ServiceAccount", "name": name, "namespace": space}]
        self.post("ServiceAccount", {"metadata": there})
        self.post("Role", {"metadata": there, "rules": _TABLE["chart role"]})
        self.post("RoleBinding", {"metadata": there, "roleRef": role, "subjects": me})
        self._sign_in(name, space, f"vcluster {team}")
        # Somebody to whom its rights are passed on.
        other = {"name": "helper", "namespace": space}
        subject = [{"kind": "ServiceAccount", **other}]
        self.post("ServiceAccount", {"metadata": other})
        self.post("RoleBinding", {"metadata": other, "roleRef": role, "subjects": subject})
        self._sign_in("helper", space, f"vcluster {team} delegate")

    def delegate(self, team: str) -> None:
        """The account of its stack, and another one, with all rights that there are to pass on.

        By itself it can pass on none: it makes no role and no binding.
        """
        space = f"team-{team}"
        other = {"name": "friend", "namespace": space}
        subject = {"kind": "ServiceAccount", **other}
        own = {"kind": "ServiceAccount", "name": team, "namespace": "kai-fleet-team-stacks"}
        self.post("ServiceAccount", {"metadata": other})
        for called, kind, role, subjects in (
            ("friend", "ClusterRole", "kai-fleet-team-stack", [subject]),
            ("friend-of-chart", "Role", f"vc-{team}", [subject]),
            ("stack-of-chart", "Role", f"vc-{team}", [own]),
        ):
            binding = {
                "metadata": {"name": called, "namespace": space},
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
                "subjects": subjects,
            }
            self.post("RoleBinding", binding)
        self._sign_in("friend", space, f"stack {team} delegate")

    def _sign_in(self, name: str, namespace: str, called: str) -> None:
        asked = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)
        )
        given = client.CoreV1Api(self.admin).create_namespaced_service_account_token(
            name, namespace, asked
        )
        own = client.Configuration()
        own.host = self.admin.configuration.host
        own.ssl_ca_cert = self.admin.configuration.ssl_ca_cert
        own.api_key = {"authorization": f"Bearer {given.status.token}"}
        self.accounts[called] = client.ApiClient(own)


def reported(why: ApiException) -> str:
    """The message of a refusal."""
    try:
        return str(json.loads(why.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(why.body)


# What Kubernetes refuses itself from 1.36 on, before it asks a policy.
OF_KUBERNETES = (
    "must not have leading 0s",
    "must not be an IPv4-mapped IPv6 address",
    "may not be set on pods that are already bound to a node",
    "changing status.allocation",
)


def says(why: ApiException, sentence: str) -> bool:
    """Whether a refusal is a policy's with this sentence, or Kubernetes' own."""
    if why.status == 422:
        return any(own in reported(why) for own in OF_KUBERNETES)
    return why.status == 403 and sentence in reported(why)
