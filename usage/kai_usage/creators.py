"""Objects that create pods, such as Jobs and ReplicaSets."""

from kai_usage.objects import Object, is_true, spec_of, status_of

# Fields of a status with the number of pods that an object has created.
_COUNTS = (
    "replicas",
    "currentNumberScheduled",
    "active",
    "succeeded",
)


def lacks_pods(creator: Object) -> bool:
    """Whether an object has fewer pods than it asks for and still creates them.

    Not one that has ended or is suspended. A Job asks for `parallelism` pods, but for no more than
    it still lacks of `completions`; without `completions` for none once a pod has succeeded. Only
    its active pods count. Other objects ask for `replicas`, a DaemonSet for
    `desiredNumberScheduled`; one that does not say how many asks for 1. A pod counts once it is
    created: it need not be ready. Raises TypeError or ValueError for what is no number there, as
    for `replicas: null`.
    """
    spec = spec_of(creator)
    status = status_of(creator)
    if spec.get("suspend"):
        return False
    if is_true(creator, "Complete") or is_true(creator, "Failed"):
        return False
    if "parallelism" in spec:
        active = _number(status, "active")
        return active < _pods_of_job(spec, status)
    created = max(_number(status, key) for key in _COUNTS)
    desired = status.get("desiredNumberScheduled", 1)
    desired = spec.get("replicas", desired)
    return bool(created < desired)


def _pods_of_job(spec: Object, status: Object) -> int:
    """The number of pods that a Job lets run at the same time now.

    Negative if more have succeeded than its `completions`. Raises TypeError or ValueError for what
    is no number, KeyError without `parallelism`.
    """
    parallelism = int(spec["parallelism"])
    succeeded = _number(status, "succeeded")
    completions = spec.get("completions")
    if completions is None:
        return 0 if succeeded else parallelism
    lacking = int(completions) - succeeded
    return min(parallelism, lacking)


def _number(status: Object, key: str) -> int:
    """A whole number of a status, 0 without one. Raises TypeError or ValueError for no number."""
    return int(status.get(key) or 0)
