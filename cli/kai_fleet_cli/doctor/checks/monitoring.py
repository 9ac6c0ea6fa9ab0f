"""What the stack tells Prometheus: there, and where the Prometheus operator looks."""

from kai_fleet_cli.doctor.cluster_state import Findings, Snapshot

_KEY = "kai-fleet:monitoring"
_OURS = "kai-fleet"
_OPERATOR = "the Prometheus operator"


def check(snapshot: Snapshot) -> Findings:
    """The host of a stack with monitoring."""
    host, wanted = snapshot.host, snapshot.host.wanted.monitoring
    if wanted is None or host.unreadable.keys() & {"namespaces", "podmonitors"}:
        return
    namespace, served = wanted.namespace, "podmonitors" in host.objects
    if host.named("namespaces", namespace) is None:
        yield host.broken(
            f"namespace {namespace}",
            "it is not there, and Prometheus is told in it what to read and when to call",
            f"make it: `{host.kubectl} create namespace {namespace}`; then {host.update}. Or write"
            f" the namespace where Prometheus runs at {_KEY}.namespace",
        )
    elif wanted.operator and not served:
        yield host.broken(
            _OPERATOR,
            "the host does not serve its kinds, so nothing that this program makes is read",
            f"install it, or write operator: false at {_KEY}",
        )
    elif wanted.operator and host.named("podmonitors", _OURS, namespace) is None:
        subject = f"PodMonitor {_OURS} in namespace {namespace}"
        yield host.broken(subject, "it is not there: no team's KAI is read")
    elif served and not wanted.operator:
        yield host.warning(
            _OPERATOR,
            "it is on the host, and is told nothing: what this program declares are ConfigMaps",
            f"write operator: true at {_KEY}, with the labels that your Prometheus selects by",
        )
    else:
        yield host.well("monitoring")
