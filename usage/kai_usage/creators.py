"""Objects that create pods, such as Jobs and ReplicaSets."""

from kai_usage.objects import Object, is_true, spec_of, status_of


def lacks_pods(creator: Object) -> bool:
    """Whether an object has fewer pods than it asks for and still creates them.

    Not one that has ended or is suspended. One that does not say how many it asks for asks for 1.
    """
    spec = spec_of(creator)
    if spec.get("suspend") or is_true(creator, "Complete") or is_true(creator, "Failed"):
        return False
    status = status_of(creator)
    counts = ("replicas", "currentNumberScheduled", "active", "succeeded")
    created = max(status.get(key) or 0 for key in counts)
    desired = spec.get("replicas", status.get("desiredNumberScheduled", 1))
    return bool(created < desired)
