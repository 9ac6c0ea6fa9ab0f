"""Access to a vCluster: the administrator's kubeconfig, and groups of an identity provider."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, cast

import pulumi
from pulumi import Input, Output, Resource, ResourceOptions
from pulumi.output import UNKNOWN
from pulumi.runtime import invoke_async, is_dry_run
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.cluster.connection import ClusterConnection
from kai_fleet.cluster.kube.identity import ANOTHER
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, kubeconfig_of_secret
from kai_fleet.isolation.policies import content
from kai_fleet.isolation.rights import role_ref
from kai_fleet.names import FLEET, SECRET, VIRTUAL_CLUSTER
from kai_fleet.one_run import REMOVE_VARIABLE, agreed_losses
from kai_fleet.ownership import deployed
from kai_fleet.releases.chart_stores import store_of
from kai_fleet.vcluster.chart_values import PREFIX, context_name

ROLES = ("view", "edit", "admin")
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class SinceLastWait:
    """What became of a vCluster since its wait last ended well.

    Args:
        number: for the triggers of its wait. It rises if the wait has to run again: the release was
            uninstalled by hand, its Secret cannot be used, another vCluster answers, or none
            answers at the last address and its Service has another one.
        uid: UID of another vCluster, which the wait will print; "" if it is the last one, is not
            known, or is refused.
        refusal: why nothing is declared in another vCluster: nobody agreed to the loss. "" if
            resources may be declared.
    """

    number: int
    uid: str = ""
    refusal: str = ""


class SecretAnswer(TypedDict, total=False):
    """What the package's provider says about the Secret; a key is absent if it is not known."""

    data: dict[str, str]
    """Data of the Secret, base64 by key."""
    problem: str
    """Why the Secret cannot be used; "" if it can. The provider sends a predicate, as in `is not
    there`; `_read` puts sentences in its place.
    """
    cluster: str
    """UID of the vCluster that answers at the server that was asked."""
    server: str
    """URL of the vCluster by its Service."""


@dataclass(frozen=True)
class KubeconfigSecret:
    """The Secret `vc-NAME` of a vCluster in a host namespace.

    Args:
        name: name of the vCluster, which is NAME.
        component: parent of what reads the Secret; warnings are about it.
        host: the cluster that the namespace is in.
        namespace: where the Secret is.
        values: values of the vCluster's chart.
        access: type of the access to its API: `LoadBalancer`, `Ingress`.
        endpoint: host or address of its API, with a port for Ingress and Gateway; "" if the Service
            decides.
    """

    name: str
    component: Resource
    host: ClusterConnection
    namespace: Input[str]
    values: Mapping[str, Any]
    access: str
    endpoint: Input[str]

    def kubeconfig(self, server: Output[str]) -> Output[str]:
        """The administrator's kubeconfig for a server, built anew, a secret.

        Only certificates and key come from the Secret. If the Secret cannot be used, a preview has
        an unknown value, and an update warns and has a comment that says why.
        """
        known = Output.all(self._read(server), server, context_name(self.name, self.namespace))
        return Output.secret(known.apply(lambda values: self._built(*values)))

    def _built(self, secret: SecretAnswer, server: str, context: str) -> str:
        """The kubeconfig. If the Secret cannot be used, UNKNOWN in a preview, else a comment.

        UNKNOWN is Pulumi's. Warn about the comment.
        """
        if not secret["problem"]:
            return kubeconfig_of_secret(secret["data"], server, context)
        if is_dry_run():
            return cast(str, UNKNOWN)  # the update waits for it
        # Somebody changed the Secret since the wait. An error here would end the program and every
        # other team's update; with this text only the resources inside fail.
        pulumi.log.warn(secret["problem"], self.component)
        return f"# {secret['problem']}"

    def last_printed(self) -> Mapping[str, str]:
        """What the last wait printed: `server`, `uid`, and `kubernetes` if it was known.

        Empty if none ended well.
        """
        return deployed.read().last_printed(self.name)

    def since_last_wait(self, release_id: Output[str]) -> Output[SinceLastWait]:
        """What became of the vCluster since the last wait; known once the release's id is.

        The Secret is not read if the wait runs in any case: none ended well, or the release was
        uninstalled by hand. Else warns as `_compared` does. If the wait runs again and fails, so do
        the resources inside; all other vClusters are updated.
        """
        number = deployed.read().next_wait_number(VIRTUAL_CLUSTER, self.name)
        if number != deployed.read().last_wait_number(VIRTUAL_CLUSTER, self.name):
            return release_id.apply(lambda _: SinceLastWait(number))  # it runs in any case
        secret = self._read(release_id, self.last_printed().get("server", ""))
        # Nothing in it shows the Secret's content.
        return Output.unsecret(secret.apply(partial(self._compared, number)))

    def _compared(self, number: int, secret: SecretAnswer) -> SinceLastWait:
        """Compare the vCluster with the one that the last wait saw; `number` is that wait's.

        A vCluster is another one by its UID, also if the last wait printed none. To it the user
        agrees by $KAI_FLEET_REMOVE_TEAM, with the team or the stack. Warn in a preview if the
        Secret cannot be used, so that the update waits for it, or if nobody agreed.
        """
        if secret["problem"]:
            if is_dry_run():
                pulumi.log.warn(f"{secret['problem']}. The update waits for it", self.component)
            return SinceLastWait(number + 1)
        last = self.last_printed()
        uid = secret.get("cluster") or ""
        server = secret.get("server") or ""
        if not uid and server not in ("", last.get("server", "")):
            return SinceLastWait(number + 1)
        if uid in ("", last.get("uid", "")):
            return SinceLastWait(number)
        stack = pulumi.get_stack()
        if agreed_losses() & {self.name, stack}:
            return SinceLastWait(number + 1, uid)
        refusal = sentence_of_other_vcluster(self.name, stack)
        if is_dry_run():
            pulumi.log.warn(refusal, self.component)
        return SinceLastWait(number + 1, refusal=refusal)

    def warn_of_loss(self, printed: Output[dict[str, str]]) -> None:
        """Warn, in an update, if the wait found another vCluster: the host lost the last one.

        `printed` is what the wait of this run printed. If none ended well before, nothing is lost.
        """
        last_uid = self.last_printed().get("uid")
        if not last_uid or is_dry_run():
            return

        def compare(now: Mapping[str, str]) -> None:
            if now["uid"] != last_uid:
                lead = f"vCluster {self.name} {ANOTHER}"
                lost = "everything that was in the old one is lost, but for what is declared"
                pulumi.log.warn(f"{lead}: {lost}", self.component)

        printed.apply(compare)

    def _read(self, dependency: Output[str], server: str = "") -> Output[SecretAnswer]:
        """Read the Secret; if `server` is given, also the UID of the vCluster that answers there,
        and the URL by the vCluster's Service.

        They are read once the value of `dependency` is known. `problem` of the answer is there in
        any case, as `_problem` words it. The state does not have the Secret: a provider function
        reads it. For a read resource (`.get`) the engine would write its complete state twice in
        each run, even if nothing changed; with fifteen teams that was half of its work.
        """
        query = {"namespace": self.namespace, "name": f"vc-{self.name}", **self.host.properties()}
        if server:
            query |= {"server": server, "vcluster": self.name}
            query |= {"access": self.access, "host": self.endpoint}
        options = pulumi.InvokeOptions(parent=self.component)

        # With plain values: in a component that a plugin constructs, the engine takes dependencies
        # of an Output for not yet created, and answers with an unknown value.
        async def read(plain: dict[str, str]) -> SecretAnswer:
            answer: SecretAnswer = await invoke_async(SECRET, plain, options)
            return {**answer, "problem": self._problem(answer, plain["namespace"])}

        return Output.all(query, dependency).apply(lambda values: read(values[0]))

    def _problem(self, answer: SecretAnswer, namespace: str) -> str:
        """Why the Secret has no usable kubeconfig, and what to run; "" if it has one.

        `problem` of the answer is a predicate here.
        """
        name = self.name
        workload = store_of(self.values).workload
        if problem := answer.get("problem"):
            return (
                f"Secret vc-{name} of namespace {namespace} {problem}. Look with: kubectl -n"
                f" {namespace} get secrets,statefulsets; if somebody removed something by hand:"
                f" .venv/bin/fleet up --refresh --stack {pulumi.get_stack()}; if the Secret"
                f" alone: kubectl -n {namespace} rollout restart {workload} {name}"
            )
        try:
            kubeconfig_of_secret(answer["data"], "https://localhost", name)
        except TenantKubeconfigError as error:
            return explain(name, namespace, error, workload)
        return ""


def sentence_of_other_vcluster(name: str, stack: str) -> str:
    """What a vCluster that is not the one that the last update saw means, and what to do."""
    return (
        f"vCluster {name} {ANOTHER}: its store is new, and everything that was in the old one is"
        " lost. If there is a backup, restore it. To have this one"
        f" filled: {FLEET} up --stack {stack}, which names what is lost and asks; for plain pulumi"
        f" {REMOVE_VARIABLE}={name} says it"
    )


def declare_groups(name: str, groups: Mapping[str, str], inside: ResourceOptions) -> None:
    """Declare in a vCluster what groups of the identity provider may do: a role by group.

    Without groups nothing is declared. All of these may read every namespace by ClusterRole `view`,
    which shows no Secrets. `edit` and `admin` are bound in namespace `default` only: `edit` in
    kube-system would allow pods with its ServiceAccounts, and so everything. Names of the resources
    begin with `name`.
    """
    if not groups:
        return
    rbac.ClusterRole(
        f"{name}-readers",
        metadata={
            "name": "kai-fleet-readers",
            # Kubernetes adds its rules to `view`, and so to `edit` and `admin`.
            "labels": {f"{_RBAC}/aggregate-to-view": "true"},
        },
        rules=content("rights")["groups_inside"],
        opts=inside,
    )
    readers = sorted(groups)
    rbac.ClusterRoleBinding(
        f"{name}-view",
        metadata={"name": "kai-fleet-view"},
        role_ref=role_ref("ClusterRole", "view"),
        subjects=_subjects(readers),
        opts=inside,
    )
    for role in ("edit", "admin"):
        members = [group for group in readers if groups[group] == role]
        if not members:
            continue
        rbac.RoleBinding(
            f"{name}-{role}",
            metadata={"name": f"kai-fleet-{role}", "namespace": "default"},
            role_ref=role_ref("ClusterRole", role),
            subjects=_subjects(members),
            opts=inside,
        )


def _subjects(groups: Iterable[str]) -> list[rbac.SubjectArgsDict]:
    return [{"kind": "Group", "name": f"{PREFIX}{group}", "api_group": _RBAC} for group in groups]
