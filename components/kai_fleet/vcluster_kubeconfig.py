"""Who enters a vCluster: the administrator's kubeconfig, and groups of an identity provider."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import yaml
from pulumi.output import UNKNOWN
from pulumi.runtime import invoke_async, is_dry_run
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet import deployed
from kai_fleet.agreed import REMOVE_VARIABLE, named_losses
from kai_fleet.cluster.connection import ClusterConnection
from kai_fleet.cluster.kube.identity import ANOTHER
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, kubeconfig_of_secret
from kai_fleet.guards.policies import content
from kai_fleet.guards.rights import role_ref
from kai_fleet.names import SECRET, VIRTUAL_CLUSTER
from kai_fleet.settings.files.project import FLEET
from kai_fleet.values import get
from kai_fleet.vcluster_values import PREFIX, context_name, store_of

ROLES: Final = ("view", "edit", "admin")
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Found:
    """What the host has of a vCluster whose wait has run before.

    Args:
        number: For the triggers of its wait. It grows where the wait has to run again: the release
            was uninstalled by hand, its Secret cannot be used, it is another vCluster, or it does
            not answer where it was and its Service has another address.
        uid: That of another vCluster, which the wait will print; "" for that of the last one.
        refusal: Why nothing is declared in another vCluster: nobody agreed to the loss.
    """

    number: int
    uid: str = ""
    refusal: str = ""


@dataclass(frozen=True)
class KubeconfigSecret:
    """The Secret `vc-NAME` of a vCluster in a host namespace; `values` are those of its chart.

    `access` is the type of its Service's access, `endpoint` the host or address that overrides the
    Service's, "" for none.
    """

    name: str
    component: pulumi.Resource
    host: ClusterConnection
    namespace: pulumi.Input[str]
    values: Mapping[str, Any]
    access: str
    endpoint: pulumi.Input[str]

    def kubeconfig(self, server: pulumi.Output[str]) -> pulumi.Output[str]:
        """Build a kubeconfig for a server; of the Secret only certificates and key are used."""

        def built(data: Mapping[str, Any], problem: str, server: str, context: str) -> Any:
            if not problem:
                return kubeconfig_of_secret(data, server, context)
            if is_dry_run():
                return UNKNOWN  # the update waits for it
            # Somebody changed the Secret since the wait. An error here would end the program and
            # every other team's update; with this text only the resources inside fail.
            pulumi.log.warn(problem, self.component)
            return f"# {problem}"

        context = context_name(self.name, self.namespace)
        known = pulumi.Output.all(self._read(server), server, context)
        return pulumi.Output.secret(known.apply(lambda values: built(*values[0][:2], *values[1:])))

    def last(self) -> dict[str, str]:
        """What the last wait printed, `server` and `uid`; empty where none ended well."""
        step = deployed.named(VIRTUAL_CLUSTER, f"{self.name}-ready")
        printed: dict[str, str] = json.loads(deployed.read().printed.get(step) or "{}")
        return printed

    def found(self, release: pulumi.Output[str]) -> pulumi.Output[Found]:
        """What the host has for an unchanged release, once that is known.

        Where the wait runs again and fails, so do the resources inside; every other vCluster is
        updated.
        """
        number = deployed.read().again(VIRTUAL_CLUSTER, self.name)
        if number != deployed.read().waited(VIRTUAL_CLUSTER, self.name):
            return release.apply(lambda _: Found(number))  # it runs in any case
        last = self.last()

        def judged(problem: str, uid: str, server: str) -> Found:
            if problem:
                if is_dry_run():
                    pulumi.log.warn(f"{problem}. The update waits for it", self.component)
                return Found(number + 1)
            if uid in ("", last.get("uid", "")):
                has_moved = not uid and server not in ("", last.get("server", ""))
                return Found(number + has_moved)
            if named_losses() & {self.name, pulumi.get_stack()}:
                return Found(number + 1, uid)
            refusal = another(self.name, pulumi.get_stack())
            if is_dry_run():
                pulumi.log.warn(refusal, self.component)
            return Found(number + 1, refusal=refusal)

        read = self._read(release, last.get("server", ""))
        # Nothing of it shows the Secret's content.
        return pulumi.Output.unsecret(read.apply(lambda read: judged(*read[1:])))

    def warn_of_loss(self, printed: pulumi.Output[dict[str, str]]) -> None:
        """Warn where an update has found another vCluster: the host lost the one before."""
        before = self.last().get("uid")

        def compare(now: Mapping[str, str]) -> None:
            if now["uid"] != before:
                lead = f"vCluster {self.name} {ANOTHER}"
                lost = "everything that was in the old one is lost, but for what is declared"
                pulumi.log.warn(f"{lead}: {lost}", self.component)

        if before and not is_dry_run():
            printed.apply(compare)

    def _read(self, later: pulumi.Output[str], server: str = "") -> pulumi.Output[Any]:
        """The Secret's data, why it has no usable kubeconfig, the UID of the vCluster that answers
        at `server`, and the URL by its Service, once `later` is known. The last two are "" where
        they are not known. The state does not have the Secret.

        A provider function: for a read resource (`.get`) the engine writes its whole state twice in
        each run, even if nothing changed; with fifteen teams that was half of its work.
        """
        query = {"namespace": self.namespace, "name": f"vc-{self.name}", **self.host.properties()}
        if server:
            query |= {"server": server, "vcluster": self.name}
            query |= {"access": self.access, "host": self.endpoint}
        options = pulumi.InvokeOptions(parent=self.component)

        # With plain values: in a component that a plugin constructs, the engine takes dependencies
        # of an Output for not yet created, and answers with an unknown value.
        async def read(known: dict[str, Any]) -> tuple[Any, str, str, str]:
            answer = await invoke_async(SECRET, known, options)
            problem = self._problem(answer, known["namespace"])
            cluster, address = answer.get("cluster") or "", answer.get("server") or ""
            return answer.get("data"), problem, cluster, address

        return pulumi.Output.all(query, later).apply(lambda values: read(values[0]))

    def _problem(self, answer: Mapping[str, Any], namespace: str) -> str:
        """Why the Secret has no usable kubeconfig; "" where it has one."""
        name, workload = self.name, store_of(self.values).workload
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


def another(name: str, stack: str) -> str:
    """A sentence about a vCluster that is not the one that the last update saw."""
    return (
        f"vCluster {name} {ANOTHER}: its store is new, and everything that was in the old one is"
        " lost. If there is a backup, restore it. To have this one"
        f" filled: {FLEET} up --stack {stack}, which names what is lost and asks; for plain pulumi"
        f" {REMOVE_VARIABLE}={name} says it"
    )


def warn_of_dead(
    name: str, last: str | None, kubeconfig: pulumi.Output[str], component: pulumi.Resource
) -> None:
    """Warn where the kubeconfig of the last update, of which people have copies, works no more."""
    before = _cluster(last)

    def compare(text: str) -> None:
        now = _cluster(text)
        if not (before and now) or before == now:
            return
        why = f"its API is at {now['server']} now, and was at {before['server']}"
        if before["server"] == now["server"]:
            why = "its certificate authority is another one"
        stack = pulumi.get_stack()
        write = f"{FLEET} team kubeconfig {name} --stack {stack} --output {name}.kubeconfig"
        dead = f"the kubeconfigs that people have of vCluster {name} are dead: {why}"
        pulumi.log.warn(f"{dead}. Write new ones, and hand them out: {write}", component)

    if before and not is_dry_run():
        kubeconfig.apply(compare)


def _cluster(kubeconfig: str | None) -> Any:
    """Server and authority of a kubeconfig; None for a text that is none."""
    clusters = get(yaml.safe_load(kubeconfig or ""), "clusters")
    return get(clusters[0], "cluster") if clusters else None


def declare_groups(name: str, groups: Mapping[str, str], inside: pulumi.ResourceOptions) -> None:
    """Declare what groups may do inside a vCluster, if there are any; `name` begins the resources'.

    All groups may read every namespace by ClusterRole `view`, which shows no Secrets. `edit` and
    `admin` are bound in namespace `default` only: `edit` in kube-system would allow pods with its
    ServiceAccounts, and so everything.
    """
    if groups:
        # Kubernetes aggregates it into view, and so into edit and admin.
        labels = {f"{_RBAC}/aggregate-to-view": "true"}
        metadata: Any = {"name": "kai-fleet-readers", "labels": labels}
        rules = content("rights")["groups_inside"]
        rbac.ClusterRole(f"{name}-readers", metadata=metadata, rules=rules, opts=inside)
    for role in ROLES:
        of_all, metadata = role == "view", {"name": f"kai-fleet-{role}"}
        kind: Any = rbac.ClusterRoleBinding if of_all else rbac.RoleBinding
        members = [
            {"kind": "Group", "name": f"{PREFIX}{group}", "api_group": _RBAC}
            for group in sorted(groups)
            if of_all or groups[group] == role
        ]
        if members:
            kind(
                f"{name}-{role}",
                metadata=metadata if of_all else {**metadata, "namespace": "default"},
                role_ref=role_ref("ClusterRole", role),
                subjects=members,
                opts=inside,
            )
