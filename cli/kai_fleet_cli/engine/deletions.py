"""Say while the engine deletes a namespace why it does not go: the engine waits ten minutes."""

import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final

from pulumi import automation

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.terminating import causes, live, sentence
from kai_fleet.names import NAMESPACE
from kai_fleet.urns import read_urn
from kai_fleet.values import get
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.hosts import NO_ANSWER, cluster_of_stack
from kai_fleet_cli.recovery import state

_EVERY_SECONDS: Final = 5.0
_QUIET_SECONDS: Final = 60.0  # what no cause is known of may still go by itself
_DELETED: Final = ("delete", "delete-replaced")


@dataclass
class _Going:
    """A namespace that is deleted; `team` is the vCluster that it is in, "" on the host."""

    name: str
    team: str
    since: float
    said: str = ""


class Deletions:
    """The namespaces that a stack's engine deletes now, and a thread that looks at them."""

    def __init__(self, stack: automation.Stack) -> None:
        self._stack = stack
        self._going: dict[str, _Going] = {}
        self._over = threading.Event()
        self._watching: threading.Thread | None = None

    def close(self) -> None:
        """End the thread."""
        self._over.set()

    def note(self, event: automation.EngineEvent) -> None:
        """Look at an event of the engine."""
        if event.resource_pre_event is not None:
            step = event.resource_pre_event.metadata
            if step.op in _DELETED and step.type == NAMESPACE and step.old is not None:
                self._begin(step)
        for ended in (event.res_outputs_event, event.res_op_failed_event):
            if ended is not None:
                self._going.pop(ended.metadata.urn, None)

    def _begin(self, step: automation.StepEventMetadata) -> None:
        name = get(step.old.inputs, "metadata", "name") if step.old else None
        clusters = sorted(state.clusters_of({"provider": step.provider}))
        team = read_urn(clusters[0]).name if clusters else ""
        self._going[step.urn] = _Going(str(name), team, time.monotonic())
        if self._watching is None:
            self._watching = threading.Thread(target=self._watch, daemon=True)
            self._watching.start()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            for each in list(self._going.values()):
                with suppress(*NO_ANSWER):
                    self._look(each)

    def _look(self, each: _Going) -> None:
        """Say once what keeps a namespace."""
        kubectl = f"kubectl --kubeconfig {each.team}.kubeconfig" if each.team else "kubectl"
        with closing(cluster_of_stack(self._stack, each.team)) as api:
            space = KubeObject(api.get(f"/api/v1/namespaces/{each.name}"))
            found = causes(space, live(api))
        late = time.monotonic() - each.since > _QUIET_SECONDS
        words = sentence(space, found) if found or (late and space.is_being_deleted) else ""
        commands = [f"{kubectl} {cause.kubectl}" for cause in found if cause.kubectl]
        if commands:
            words += f". Meanwhile run: {' && '.join(commands)}"
        if words not in ("", each.said):
            each.said = words
            say(words)
