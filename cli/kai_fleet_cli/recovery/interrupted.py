"""What became of something that a run had begun to make, by what its cluster has of it.

And Helm's own commands for a release that a killed run left half-way.
"""

import datetime
import os
import shlex
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.fleet.deployed_state import NAMESPACE, NAMESPACE_PATCH, RELEASE
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet_cli.cluster_reader import NoAnswerError
from kai_fleet_cli.display.terminal import Say
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.live_cluster import LiveCluster, LiveObject, wrong_record
from kai_fleet_cli.recovery.state import ExportedState, Operation, provider_of

_PATIENCE_SECONDS: Final = 60.0  # a killed engine's plugin may still be at work
_HELM_SECONDS: Final = 600.0
_CHANGING: Final = ("-upgrade", "-rollback")  # of a release's status


@dataclass(frozen=True)
class HelmRemedy:
    """`helm uninstall` or `helm rollback` of a release; `provider` has the way to its cluster."""

    verb: str
    operation: Operation
    provider: Mapping[str, Any]

    @property
    def arguments(self) -> list[str]:
        """The command's, without the way to the cluster.

        Hooks are those of Helm's record. Of a vCluster's release a tenant may have written that,
        and no vCluster chart has any.
        """
        namespace, name = self.operation.address
        without = ["--no-hooks"] if self.operation.of_vcluster else []
        return ["helm", self.verb, name, "--namespace", namespace, *without]

    @property
    def context(self) -> list[str]:
        """The option that names the cluster in a kubeconfig."""
        context = self.provider.get("context")
        return ["--kube-context", str(context)] if context else []

    def __str__(self) -> str:
        """The command as a person runs it with that cluster's kubeconfig."""
        return shlex.join([*self.arguments, *self.context])

    def run(self, environment: Mapping[str, str]) -> None:
        """Run it. Raises UserError with Helm's words, or the command where there is no Helm."""
        kubeconfig = str(self.provider.get("kubeconfig") or "")
        files: list[int] = []
        if "\n" in kubeconfig:  # its content, in memory: a killed run leaves no file with a key
            if not hasattr(os, "memfd_create"):
                raise UserError(f"with the kubeconfig of that cluster, run: {self}")
            files = [os.memfd_create("kubeconfig", 0)]
            os.write(files[0], kubeconfig.encode())
            kubeconfig = f"/proc/self/fd/{files[0]}"
        way = ["--kubeconfig", kubeconfig] if kubeconfig else []
        try:
            done = subprocess.run(
                [*self.arguments, *way, *self.context],
                env={**os.environ, **environment},
                pass_fds=files,
                capture_output=True,
                text=True,
                timeout=_HELM_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise UserError(f"helm is not on PATH; install it, or run: {self}") from None
        except subprocess.TimeoutExpired:
            raise UserError(f"{self} did not end within {_HELM_SECONDS:.0f} s") from None
        finally:
            for file in files:
                os.close(file)
        if done.returncode != 0 and "not found" not in done.stderr:
            raise UserError(f"{self} failed: {done.stderr.strip()}")


class Judge:
    """Decides one operation after the other: what is to be done, and in `unanswered` the clusters
    that could not be asked.

    `since` is None where the state itself says that the run had begun to make the thing; else an
    object of the host counts as this stack's own only if it was made after that, while the
    stack's runs were failing.
    """

    def __init__(
        self,
        now: ExportedState,
        since: datetime.datetime | None,
        say: Say,
        kubeconfig: str | None = None,
    ) -> None:
        self.imports: list[Operation] = []
        self.remedies: list[HelmRemedy] = []
        self.unanswered: list[str] = []
        self._now, self._since, self._say = now, since, say
        self._known, self._kubeconfig = now.providers(), kubeconfig

    @property
    def decided(self) -> bool:
        """Whether anything came of it."""
        return bool(self.imports or self.remedies)

    def decide(self, operation: Operation) -> None:
        """Look at one; what is not on a cluster, and changes of objects, are simply done again."""
        missing = operation.kind == "creating" and operation.urn not in self._now.urns()
        on_cluster = operation.type.startswith("kubernetes:")
        if not on_cluster or not (missing or operation.type == RELEASE):
            return
        if operation.type == NAMESPACE_PATCH:  # applied again, it says the same
            return
        try:
            cluster = self._cluster(operation)
            if operation.type == RELEASE:
                self._release(cluster, operation, missing)
            else:
                self._object(cluster, operation)
        except NoAnswerError as why:
            if operation.inside:
                # Should it be there, the update is told so, and it is looked at again then.
                self._say(f"{operation}: its vCluster cannot be asked: {why}")
            else:
                self.unanswered.append(f"{operation}: its cluster cannot be asked: {why}")

    def _cluster(self, operation: Operation) -> LiveCluster:
        provider = self._known.get(provider_of(operation.resource))
        if provider is None:
            raise NoAnswerError("the state does not know its provider")
        return LiveCluster(provider, self._kubeconfig)

    def _object(self, cluster: LiveCluster, operation: Operation) -> None:
        live = cluster.object(operation.resource["inputs"], *operation.address)
        if live is None:
            self._say(f"{operation}: it was not made; it will be now")
        elif self._ours(operation, live):
            self._say(f"{operation}: an interrupted run made it; it is taken into the state")
            self.imports.append(operation)
        else:
            self._say(f"{operation}: {operation.id} is there, but this stack did not make it")

    def _ours(self, operation: Operation, live: LiveObject) -> bool:
        if not live.by_pulumi or not live.has(operation.resource["inputs"]):
            return False
        if self._since is None or operation.inside or self._in_own_namespace(operation):
            return True
        return live.made >= self._since.replace(microsecond=0)

    def _release(self, cluster: LiveCluster, operation: Operation, missing: bool) -> None:
        status = _settled(cluster, operation, self._say)
        half_made = operation.kind in ("creating", "replacing")
        if status == "absent":
            self._say(f"{operation}: it is not installed; it will be now")
        elif missing and not self._in_own_namespace(operation):
            self._say(f"{operation}: {operation.id} is there, but this stack did not make it")
        elif half_made or status not in ("deployed", "failed"):
            # KAI cannot be rolled back; uninstalled, it leaves queues and running pods (K9).
            back = not half_made and operation.address[0] != KAI_NAMESPACE
            verb = "rollback" if back and status.endswith(_CHANGING) else "uninstall"
            if operation.of_vcluster and (wrong := wrong_record(cluster, operation)):
                again = "and run the same command again. Nothing was done"
                raise UserError(f"{operation}: {wrong}, {again}")
            remedy = HelmRemedy(verb, operation, self._known[provider_of(operation.resource)])
            self._say(f"{operation}: it is there as {status}, and was not finished: {remedy}")
            self.remedies.append(remedy)

    def _in_own_namespace(self, operation: Operation) -> bool:
        """Whether it is in a namespace that this stack made, on the same cluster."""
        namespace, _ = operation.address
        return bool(namespace) and any(
            resource["type"] == NAMESPACE
            and resource.get("id") == namespace
            and resource.get("provider") == operation.resource.get("provider")
            for resource in self._now.resources
        )


def _settled(cluster: LiveCluster, operation: Operation, say: Say) -> str:
    """A release's status; one that is pending is looked at again for a minute."""
    until = time.monotonic() + _PATIENCE_SECONDS
    status = cluster.release(*operation.address)
    if status.startswith("pending-"):
        say(f"{operation}: it is {status}; waiting up to a minute, in case something still does it")
    while status.startswith("pending-") and time.monotonic() < until:
        time.sleep(1.0)
        status = cluster.release(*operation.address)
    return status
