"""The way into a vCluster: its kubeconfig, of the Secret that it wrote in its namespace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.output import UNKNOWN
from pulumi.runtime import invoke_async, is_dry_run

from kai_fleet import deployed
from kai_fleet.cluster.connection import ClusterConnection
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, of_secret
from kai_fleet.deployed import SECRET, VIRTUAL_CLUSTER
from kai_fleet.values import value_at
from kai_fleet.vcluster_stores import store_of


@dataclass(frozen=True)
class WayIn:
    """The Secret `vc-NAME` of a vCluster in a namespace of the host, whose chart has the values."""

    name: str
    component: pulumi.Resource
    host: ClusterConnection
    namespace: pulumi.Input[str]
    values: Mapping[str, Any]

    def kubeconfig(self, server: pulumi.Output[str]) -> pulumi.Output[str]:
        """The kubeconfig for a server: built anew, whoever wrote the Secret."""

        def built(answer: dict[str, Any], namespace: str, server: str, context: str) -> Any:
            if problem := self._problem(answer, namespace):
                if is_dry_run():
                    return UNKNOWN  # the update waits for it
                # Since the wait somebody changed it. An error here would end the program, and with
                # it the updates of all others; by this text what is inside alone fails.
                pulumi.log.warn(problem, self.component)
                return f"# {problem}"
            return of_secret(answer["data"], server, context)

        context = value_at(self.values, "exportKubeConfig.context")
        known = pulumi.Output.all(self._read(server), self.namespace, server, context)
        return pulumi.Output.secret(known.apply(lambda values: built(*values)))

    def again(self, release: pulumi.Output[str]) -> pulumi.Input[str]:
        """A number that grows where the wait has to run although the release is the same: it was
        uninstalled by hand, or there is no way in any more.

        Then the wait fails, and so does what is inside; every other vCluster is updated.
        """
        state = deployed.read()
        number = state.again(VIRTUAL_CLUSTER, self.name)
        if number != state.waited(VIRTUAL_CLUSTER, self.name):
            return str(number)  # it runs in any case

        def counted(answer: dict[str, Any], namespace: str) -> str:
            problem = self._problem(answer, namespace)
            if problem and is_dry_run():
                pulumi.log.warn(f"{problem}. The update waits for it", self.component)
            return str(number + bool(problem))

        known = pulumi.Output.all(self._read(release), self.namespace)
        # Whether the Secret is as it should be is no secret.
        return pulumi.Output.unsecret(known.apply(lambda values: counted(*values)))

    def _read(self, later: pulumi.Output[str]) -> pulumi.Output[Any]:
        """The Secret, once `later` is known; kept out of the state.

        By a function of the provider: for a resource that is read, the engine writes its whole
        state twice in each run, though nothing changed; with fifteen teams that was half of its
        work.
        """
        asked = {"namespace": self.namespace, "name": f"vc-{self.name}", **self.host.properties()}
        options = pulumi.InvokeOptions(parent=self.component)
        # Called with plain values. Of a component that a plugin constructs, the engine takes what
        # the namespace depends on for not yet made, and answers an Output with an unknown value.
        known = pulumi.Output.all(asked, later)
        return known.apply(lambda values: invoke_async(SECRET, values[0], options))

    def _problem(self, answer: Mapping[str, Any], namespace: str) -> str:
        """Why the Secret gives no way in; "" where it does."""
        name, workload = self.name, store_of(self.values).workload
        if problem := answer.get("problem"):
            return (
                f"Secret vc-{name} of namespace {namespace} {problem}. Look with: kubectl -n"
                f" {namespace} get secrets,statefulsets; if somebody removed something by hand:"
                f" .venv/bin/fleet up --refresh --stack {pulumi.get_stack()}; if the Secret"
                f" alone: kubectl -n {namespace} rollout restart {workload} {name}"
            )
        try:
            of_secret(answer["data"], "https://localhost", name)
        except TenantKubeconfigError as error:
            return explain(name, namespace, error, workload)
        return ""
