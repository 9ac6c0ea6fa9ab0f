"""Objects that create pods, such as Jobs and ReplicaSets."""

from kai_usage.objects import Object, is_true, spec_of, status_of


def lacks_pods(creator: Object) -> bool:
    """Whether an object has fewer pods than it asks for and still creates them.

    Not one that has ended or is suspended. A Job asks for `parallelism` pods, but for no more than
    it still lacks of `completions`; without `completions` for none once a pod has succeeded. An
    object that does not say how many it asks for asks for 1.
    """
    spec = spec_of(creator)
    if spec.get("suspend") or is_true(creator, "Complete") or is_true(creator, "Failed"):
        return False
    status = status_of(creator)
    if "parallelism" in spec:
        return bool((status.get("active") or 0) < _pods_of_job(spec, status))
    counts = ("replicas", "currentNumberScheduled", "active", "succeeded")
    created = max(status.get(key) or 0 for key in counts)
    desired = spec.get("replicas", status.get("desiredNumberScheduled", 1))
    return bool(created < desired)


def _pods_of_job(spec: Object, status: Object) -> int:
    """The number of pods that a Job lets run at the same time now."""
    parallelism = int(spec["parallelism"])
    succeeded = int(status.get("succeeded") or 0)
    completions = spec.get("completions")
    if completions is None:
        return 0 if succeeded else parallelism
    return min(parallelism, int(completions) - succeeded)
