"""Labels and annotations that KAI reads, in the place where it reads them, as strings."""

from collections.abc import Iterator, Mapping

from kai_fleet.fleet.cluster import Cluster
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.releases.keys import QUEUE_LABEL, right_key
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import quoted
from kai_fleet_policies.problem import Level, Problems, Severity, called, of_workload

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "KAI ignores keys that it does not know: a pod with kai.scheduler/gpu-fraction runs without a"
    " GPU, or on one that nobody accounts (W2). Values of labels and annotations are strings (W5)."
)
REMEDY = "Write the key that the message names, and put numbers and booleans between quotes."


def check(cluster: Cluster) -> Problems:
    """The labels and annotations of each workload, and the labels of the object itself."""
    for workload in cluster.workloads:
        # The commercial product that KAI came from has a scheduler and keys of its own.
        if isinstance(workload.scheduler, str) and workload.scheduler.startswith("runai"):
            continue
        place = of_workload(workload, cluster)
        reported: set[str] = set()
        for message in (
            *_in(workload.labels, "label"),
            *_in(workload.annotations, "annotation"),
            *_in(workload.owner_labels, "label"),
            *_resources(workload),
        ):
            if message not in reported:
                reported.add(message)
                yield place.mandatory(message)
        if UNKNOWN in (workload.labels, workload.annotations, workload.owner_labels):
            yield place.undecided("all its labels and annotations are known")


def has_non_strings(workload: PodTemplate) -> bool:
    """Whether a label or annotation has a value that no API server takes."""
    return any(
        pairs is not UNKNOWN
        and any(
            value not in (None, UNKNOWN) and not isinstance(value, str) for value in pairs.values()
        )
        for pairs in (workload.labels, workload.annotations, workload.owner_labels)
    )


def _resources(workload: PodTemplate) -> Iterator[str]:
    """A share of a GPU as a resource of a container, which no node has."""
    for container in () if workload.containers is UNKNOWN else workload.containers:
        for amounts in (container.limits, container.requests):
            for key in () if amounts is UNKNOWN else amounts:
                right = right_key(key) if "/" in key else None
                if right and right != key:
                    yield (
                        f"asks for the resource {key} in container {called(container.name)}, which"
                        f" no node has; write the annotation {right}"
                    )


def _in(pairs: Mapping[str, object], place: str) -> Iterator[str]:
    if pairs is UNKNOWN:
        return
    for key, value in pairs.items():
        right = right_key(key)
        if right == "":
            yield f"has the {place} {key}, which no supported KAI version reads; remove it"
        elif right is not None:
            wanted = "label" if right == QUEUE_LABEL else "annotation"
            if right != key:
                yield (
                    f"has the {place} {key}, which no supported KAI version reads;"
                    f" write the {wanted} {right}"
                )
            elif place != wanted:
                yield f"has {key} as {place}; KAI reads it as {wanted}: move it there"
        if value not in (None, UNKNOWN) and not isinstance(value, str):
            yield (
                f"has the {place} {key} with a value that is not a string;"
                f" write {key}: {quoted(value)}"
            )
