"""While the engine deletes a namespace, say what keeps it: the engine waits ten minutes."""

import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass

from pulumi import automation

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.terminating import Cause, causes, live, sentence
from kai_fleet.names import NAMESPACE
from kai_fleet.urns import read_urn
from kai_fleet.values import get
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.hosts import CLUSTER_ERRORS, cluster_of_stack
from kai_fleet_cli.recovery import state

_LOOK_SECONDS = 5.0
# Without a known cause a namespace may still be deleted: nothing is said of it before.
_QUIET_SECONDS = 60.0
_DELETIONS = ("delete", "delete-replaced")


@dataclass
class _Deletion:
    """A namespace that the engine is deleting.

    Attributes:
        name: The namespace.
        team: The team in whose vCluster it is; "" for the host.
        begun: When the deletion began, in seconds of the monotonic clock.
        printed: The last line that was printed of it; "" before the first.
    """

    name: str
    team: str
    begun: float
    printed: str = ""

    @property
    def kubectl(self) -> str:
        """The kubectl for its cluster, in a vCluster's case with the kubeconfig that
        `fleet team kubeconfig` writes.
        """
        return f"kubectl --kubeconfig {self.team}.kubeconfig" if self.team else "kubectl"


class Deletions:
    """The namespaces that a stack's engine is deleting, and a thread that looks at them.

    The thread starts with the first deletion, and reads each namespace every five seconds.
    """

    def __init__(self, stack: automation.Stack) -> None:
        self._stack = stack
        self._deletions: dict[str, _Deletion] = {}  # by URN
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        """End the thread after its current look; do not wait for that."""
        self._closed.set()

    def note(self, event: automation.EngineEvent) -> None:
        """Begin to look at a namespace when its deletion begins; end when that ends or fails."""
        if event.resource_pre_event is not None:
            step = event.resource_pre_event.metadata
            is_deletion = step.op in _DELETIONS and step.type == NAMESPACE
            if is_deletion and step.old is not None:
                self._begin(step, step.old)
        for ended in (event.res_outputs_event, event.res_op_failed_event):
            if ended is not None:
                self._deletions.pop(ended.metadata.urn, None)

    def _begin(
        self, step: automation.StepEventMetadata, namespace: automation.StepEventStateMetadata
    ) -> None:
        """Keep a namespace to look at, from the state before `step`. At the first one start the
        thread.
        """
        name = get(namespace.inputs, "metadata", "name")
        clusters = sorted(state.clusters_of({"provider": step.provider}))
        team = read_urn(clusters[0]).name if clusters else ""
        self._deletions[step.urn] = _Deletion(
            name=str(name),
            team=team,
            begun=time.monotonic(),
        )
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        """Look at each namespace until `close`; ignore clusters that do not answer."""
        while not self._closed.wait(_LOOK_SECONDS):
            for deletion in list(self._deletions.values()):
                with suppress(*CLUSTER_ERRORS):
                    self._look(deletion)

    def _look(self, deletion: _Deletion) -> None:
        """Print on stderr what keeps a namespace, unless that is "" or was its last line.

        Raises one of CLUSTER_ERRORS: AbsentError if the namespace is gone.
        """
        with closing(cluster_of_stack(self._stack, deletion.team)) as api:
            namespace = KubeObject(api.get(f"/api/v1/namespaces/{deletion.name}"))
            reasons = causes(namespace, live(api))
        line = _line(deletion, namespace, reasons)
        if line and line != deletion.printed:
            deletion.printed = line
            say(line)


def _line(deletion: _Deletion, namespace: KubeObject, reasons: list[Cause]) -> str:
    """What keeps a namespace and the commands that end it, in one line.

    Without a cause it is "" during the first minute, and for a namespace that is not being deleted;
    later it has Kubernetes' words about what remains, or says that the namespace does not go yet.
    """
    is_late = time.monotonic() - deletion.begun > _QUIET_SECONDS
    if not reasons and not (is_late and namespace.is_being_deleted):
        return ""
    line = sentence(namespace, reasons)
    commands = [f"{deletion.kubectl} {cause.kubectl}" for cause in reasons if cause.kubectl]
    if not commands:
        return line
    return f"{line}. Meanwhile run: {' && '.join(commands)}"
