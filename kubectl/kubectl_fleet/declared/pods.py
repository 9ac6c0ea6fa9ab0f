"""What runs in a cluster: pods, and the pod templates of workloads, as far as a rule looks at it.

Anything in it may be a value that only the update knows, which is no text and no mapping.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_fleet.releases.keys import POD_GROUP, QUEUE_LABEL
from kubectl_fleet.releases.mig import PREFIX


@dataclass(frozen=True)
class PodContainer:
    """The name and resources of one container, its image, and its command with arguments."""

    name: str = ""
    requests: Any = field(default_factory=dict)
    limits: Any = field(default_factory=dict)
    image: str | None = None
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def slices(self) -> list[str]:
        """The names of the MIG slices that it asks for, as far as that is known."""
        known = [it for it in (self.requests, self.limits) if isinstance(it, Mapping)]
        return sorted({key for it in known for key in it if str(key).startswith(PREFIX)})

    def asks_for(self, resource: str) -> Any:
        """Whether the resource is requested or limited at all, were it 0."""
        for amounts in (self.requests, self.limits):
            if not isinstance(amounts, Mapping):
                return amounts
        return resource in self.requests or resource in self.limits


@dataclass(frozen=True)
class PodWriter:
    """The operator that makes a kind's pods, and what it writes on them for KAI.

    `scheduler`: it writes the schedulerName, where it is configured so and the template has none.
    `queue`: it copies the queue to each pod. `queue_key` is where a user writes the queue, and
    `scheduler_flag` how the operator is told to use KAI. `queue_elsewhere`: another object that
    refers to this one names the queue. `default_queue` is the one of pods that name none.
    """

    name: str
    scheduler: bool = False
    queue: bool = False
    queue_key: str = f"the label {QUEUE_LABEL}"
    scheduler_flag: str = ""
    queue_elsewhere: bool = False
    default_queue: str = "default-queue"


@dataclass(frozen=True)
class PodTemplate:
    """A pod, or one pod template of a workload.

    `labels` and `annotations` are the pods'; `owner_labels` those of the object itself, where KAI
    looks for the queue first. `part` names the template where a kind has several. `scheduler` is
    what the pods get, also where their `writer` writes it; `writer` is None for plain kinds.
    """

    kind: str
    name: str
    namespace: str | None = None
    scheduler: str | None = None
    labels: Any = field(default_factory=dict)
    annotations: Any = field(default_factory=dict)
    containers: tuple[PodContainer, ...] = ()
    owner_labels: Any = field(default_factory=dict)
    part: str = ""
    path: str = ""
    writer: PodWriter | None = None

    @property
    def names_queue(self) -> Any:
        """Whether it carries the queue label at all."""
        for labels in (self.owner_labels, self.labels):
            if not isinstance(labels, Mapping):
                return labels
            if QUEUE_LABEL in labels:
                return True
        return False

    @property
    def pod_group(self) -> Any:
        """The PodGroup that the pods name themselves; None where KAI makes one for them."""
        if not isinstance(self.annotations, Mapping):
            return self.annotations
        return self.annotations.get(POD_GROUP) or None

    @property
    def queue(self) -> Any:
        """The value of the queue label: of the object, else of its pods; None where absent."""
        for labels in (self.owner_labels, self.labels):
            if not isinstance(labels, Mapping):
                return labels
            if QUEUE_LABEL in labels:
                return labels[QUEUE_LABEL]
        return None
