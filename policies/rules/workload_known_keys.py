"""Labels and annotations that KAI reads, in the place where it reads them, as strings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from policies.model import QUEUE_LABEL, UNKNOWN, Cluster, Workload, workload_subject
from policies.problem import Level, Problem, Severity, mandatory, undecided
from policies.unknown import Unknown
from policies.wording import quoted

NAME = "workload-known-keys"
LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "KAI ignores keys that it does not know: a pod with kai.scheduler/gpu-fraction runs without a"
    " GPU, or on one that nobody accounts (W2). Values of labels and annotations are strings (W5)."
)
REMEDY = "Write the key that the message names, and put numbers and booleans between quotes."

_ANNOTATIONS = frozenset(
    {
        "gpu-fraction",
        "gpu-memory",
        "gpu-fraction-num-devices",
        "gpu-fraction-container-name",
    }
)
# What any release from v0.7 to v0.17 reads under its own prefix, as label or annotation.
_KAI_KEYS = frozenset(
    {
        "kai.scheduler/accounting",
        "kai.scheduler/batch-min-member",
        "kai.scheduler/last-eviction-timestamp",
        "kai.scheduler/last-start-timestamp",
        "kai.scheduler/node-pool",
        "kai.scheduler/nodepool",
        "kai.scheduler/numa-placement-observed",
        "kai.scheduler/numa-placement-predicted",
        "kai.scheduler/preemptibility",
        "kai.scheduler/preemption-delay",
        "kai.scheduler/queue",
        "kai.scheduler/segment-size",
        "kai.scheduler/segment-topology-preferred-placement",
        "kai.scheduler/segment-topology-required-placement",
        "kai.scheduler/skip-podgrouper",
        "kai.scheduler/stale-podgroup-timestamp",
        "kai.scheduler/staleness-grace-period",
        "kai.scheduler/subgroup-name",
        "kai.scheduler/task-priority",
        "kai.scheduler/top-owner-metadata",
        "kai.scheduler/topology",
        "kai.scheduler/topology-preferred-placement",
        "kai.scheduler/topology-required-placement",
        "kai.scheduler/type",
    }
)
_PREFIXES = frozenset({"kai.scheduler", "kai-scheduler", "runai", "run.ai", "scheduling.run.ai"})
# What people write for a key that exists under another name.
_MEANT = {name: name for name in _ANNOTATIONS} | {
    "fraction": "gpu-fraction",
    "gpu": "gpu-fraction",
    "memory": "gpu-memory",
    "num-devices": "gpu-fraction-num-devices",
    "container-name": "gpu-fraction-container-name",
    "mps": "mps",
    "queue": QUEUE_LABEL,
    "queue-name": QUEUE_LABEL,
}


def check(cluster: Cluster) -> Iterator[Problem]:
    """The labels and annotations of each workload, and the labels of the object itself."""
    for workload in cluster.workloads:
        # The commercial product that KAI came from has a scheduler and keys of its own.
        if isinstance(workload.scheduler, str) and workload.scheduler.startswith("runai"):
            continue
        subject = workload_subject(workload, cluster)
        said: set[str] = set()
        for message in (
            *_in(workload.labels, "label"),
            *_in(workload.annotations, "annotation"),
            *_in(workload.owner_labels, "label"),
        ):
            if message not in said:
                said.add(message)
                yield mandatory(NAME, subject, workload.path, message)
        if _any_unknown(workload):
            until = "all its labels and annotations are known"
            yield undecided(NAME, subject, workload.path, until)


def has_non_strings(workload: Workload) -> bool:
    """Whether a label or annotation has a value that no API server takes."""
    return any(
        pairs is not UNKNOWN
        and any(
            value is not None and not isinstance(value, str | Unknown) for value in pairs.values()
        )
        for pairs in (workload.labels, workload.annotations, workload.owner_labels)
    )


def _any_unknown(workload: Workload) -> bool:
    return UNKNOWN in (workload.labels, workload.annotations, workload.owner_labels)


def _in(pairs: Mapping[str, object] | Unknown, place: str) -> Iterator[str]:
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
        if value is not None and not isinstance(value, str | Unknown):
            yield (
                f"has the {place} {key} with a value that is not a string;"
                f" write {key}: {quoted(value)}"
            )


def meant() -> dict[str, str]:
    """What is meant by a name behind a known prefix, or by a bare one with dashes for `_`."""
    return dict(sorted(_MEANT.items()))


def look_alike_pattern() -> str:
    """The wrong keys that people are known to write, as a regular expression (RE2).

    The queue label, which is right, matches as well.
    """
    prefixes = "|".join(sorted(_PREFIXES)).replace(".", "[.]")
    bare = "|".join(name.replace("-", "_") for name in sorted(_ANNOTATIONS))
    return f"^({prefixes})/({'|'.join(meant())})$|^({bare})$"


def right_key(key: str) -> str | None:
    """The key that was meant: the same if right, "" for none, None if KAI has no part in it."""
    prefix, slash, name = key.rpartition("/")
    if key in _ANNOTATIONS or key == QUEUE_LABEL:
        return key
    if key in _KAI_KEYS:
        return None
    if slash and prefix.lower() in _PREFIXES:
        meant = _MEANT.get(_dashed(name))
        if meant is not None:
            return meant
        if prefix.lower() != "kai.scheduler":
            return None
        known = [*(k.rpartition("/")[2] for k in _KAI_KEYS), *_ANNOTATIONS]
        close = get_close_matches(name, known, n=1, cutoff=0.75)
        if not close:
            return ""
        return close[0] if close[0] in _ANNOTATIONS else f"kai.scheduler/{close[0]}"
    if not slash and _dashed(key) in _ANNOTATIONS:
        return _dashed(key)
    return None


def _dashed(name: str) -> str:
    return re.sub(r"[_.\s-]+", "-", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name)).lower()
