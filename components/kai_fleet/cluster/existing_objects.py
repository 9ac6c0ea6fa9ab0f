"""What a cluster has already of what a stack would make: CRDs, RuntimeClasses, namespaces.

Such an object may be used by others, or be theirs. One that the stack's state does not have is
used where it fits, and is not declared: so it is neither changed nor deleted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.fleet.deployed_state import NAMESPACE, DeployedState
from kai_fleet.provider import EXISTING
from kai_fleet.provider.functions import NODES

CRD: Final = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
RUNTIME_CLASS: Final = "kubernetes:node.k8s.io/v1:RuntimeClass"
_PATHS: Final = {
    CRD: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/",
    RUNTIME_CLASS: "/apis/node.k8s.io/v1/runtimeclasses/",
    NAMESPACE: "/api/v1/namespaces/",
}

Answer = Mapping[str, Any]


class ExistingObjects:
    """Objects of one cluster, and which of them are the stack's own.

    `read` answers for a path of the API as `kai_fleet.provider.functions.read_existing` does.
    Nothing is known to be there where the stack's state cannot be read, which would make its own
    objects those of others; and where the cluster does not answer, which is not asked again, or
    refuses to tell.
    """

    def __init__(self, read: Callable[[str], Answer], deployed: DeployedState) -> None:
        self._read, self._deployed = read, deployed
        self._away, self._refused = not deployed.readable, False
        self._answers: dict[str, Answer] = {}

    def holds(self, kind: str, resource: str) -> bool:
        """Whether the stack's state has the resource of that type and name."""
        return self._deployed.has(kind, resource)

    def find(self, kind: str, name: str) -> Answer | None:
        """The `handler` and `labels` of an object, whoever made it; None where none is."""
        return self.at(f"{_PATHS[kind]}{name}")

    def at(self, path: str) -> Answer | None:
        """The same of the object at a path of the API."""
        if path not in self._answers:
            self._answers[path] = {} if self._away else self._asked(path)
        answer = self._answers[path]
        return answer if answer.get("there") else None

    def _asked(self, path: str) -> Answer:
        """Ask twice: a connection that breaks once must not make what others own look free."""
        answer = self._read(path)
        if answer.get("away"):
            answer = self._read(path)
        self._away = bool(answer.get("away"))
        if self._away:
            # The Kubernetes plugin previews all the same, as if the cluster were empty.
            pulumi.log.warn(
                f"the host cluster is not reached: {answer.get('problem')}. What it has already is"
                " not known, and an update can change nothing there"
            )
        elif answer.get("problem") and not self._refused:
            self._refused = True  # and others after it: said once
            pulumi.log.warn(
                f"what the host cluster has already is not known: {answer['problem']} to GET"
                f" {path}. What others made there looks free in this run, and an update by this"
                " user may fail. Look with: kubectl auth can-i --list"
            )
        return answer

    def nodes(self) -> Sequence[Answer]:
        """The `labels` and `taints` of each node."""
        nodes: Sequence[Answer] = (self.at(NODES) or {}).get("nodes", ())
        return nodes

    def of_others(self, kind: str, name: str, resource: str) -> Answer | None:
        """An object that is there, and is not that resource of the stack."""
        return None if self.holds(kind, resource) else self.find(kind, name)


def of_own_cluster(deployed: DeployedState) -> ExistingObjects:
    """Of a cluster that the stack makes: what is there is its own."""
    return ExistingObjects(lambda path: {}, deployed)


NONE: Final = of_own_cluster(DeployedState())


def by_plugin(
    access: ClusterAccess, deployed: DeployedState, own: pulumi.ProviderResource
) -> ExistingObjects:
    """Read by the project's own provider, `own`.

    Nothing is there in an offline plan, which asks no cluster.
    """

    def read(path: str) -> Answer:
        arguments = {"path": path, **access.reached()}
        answer: Any = invoke(EXISTING, arguments, pulumi.InvokeOptions(provider=own)).value
        return answer or {}

    return ExistingObjects(read, deployed)
