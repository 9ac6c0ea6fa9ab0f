"""A host as a new sandbox has it, without an engine: what tests left there is deleted."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kubernetes.client.exceptions import ApiException

from kai_fleet_cli.engine.environment import OCCUPANT
from sandbox.lifecycle import Sandbox
from tests.attacks.http import Http
from tests.engine.product import api
from tests.engine.sandbox_commands import until

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
NAMESPACES = "/api/v1/namespaces"
# What may stand in the way of the rest comes first.
KINDS = (
    f"{_ADMISSION}/validatingwebhookconfigurations",
    f"{_ADMISSION}/mutatingwebhookconfigurations",
    f"{_ADMISSION}/validatingadmissionpolicybindings",
    f"{_ADMISSION}/validatingadmissionpolicies",
    NAMESPACES,
    f"{_RBAC}/clusterrolebindings",
    f"{_RBAC}/clusterroles",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
)


@dataclass
class Emptied:
    """A sandbox, and what its host had when it was new.

    `tenant` is what stands there for the next module that wants the same.
    """

    sandbox: Sandbox
    tenant: object = None
    first: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.first = frozenset(self._all())

    def _http(self) -> Http:
        return Http(api(self.sandbox.kubeconfig.read_text()))

    def _all(self) -> Iterator[str]:
        http = self._http()
        for kind in KINDS:
            for item in http.items(kind):
                yield f"{kind}/{item['metadata']['name']}"
        # The processes of a vCluster end after its namespace.
        for folder in (self.sandbox.directory / "vclusters").iterdir():
            yield str(folder)

    def empty(self) -> None:
        """Delete what the host did not have at first, and every stack of the sandbox's backend."""
        self.tenant = None
        self.empty_host()
        shutil.rmtree(self.sandbox.directory / "state" / ".pulumi", ignore_errors=True)
        (self.sandbox.directory / OCCUPANT).unlink(missing_ok=True)

    def empty_host(self) -> None:
        """Delete what the host did not have at first."""
        http = self._http()
        more = [path for path in self._all() if path not in self.first]
        for path in (path for path in more if path.startswith("/api")):
            _gone(lambda path=path: http.ask("DELETE", path))
        for space in (path for path in more if path.startswith(NAMESPACES)):
            # Kubernetes itself waits for pods, which nothing runs here.
            _gone(lambda space=space: http.ask("DELETE", f"{space}/pods", gracePeriodSeconds="0"))
        until(lambda: not [path for path in self._all() if path not in self.first])


def _gone(delete: Callable[[], object]) -> None:
    try:
        delete()
    except ApiException as why:
        assert why.status in (404, 409), why.body
