"""What bounds a team's GPUs: its ResourceQuota, and what it holds where that counts no shares."""

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.quantities import parse_quantity
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot
from kai_fleet_cli.waiting.finding import Finding


def check(snapshot: Snapshot) -> Findings:
    """Every team of a stack's file."""
    for team in snapshot.teams.values():
        if team.wanted.declared:
            yield from _quota(snapshot.host, team.wanted)
            yield from _held(snapshot.host, team.wanted)


def _quota(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    """The bound on a team's GPUs, which its own scheduler does not know of (V1, V7)."""
    if "resourcequotas" in host.unreadable or not host.named("namespaces", wanted.namespace):
        return
    subject = f"ResourceQuota gpus in namespace {wanted.namespace}"
    item = host.named("resourcequotas", "gpus", wanted.namespace)
    hard = (item.spec.get("hard") or {}) if item is not None else {}
    findings: list[Finding] = []
    for kind, most in wanted.kinds.items():
        key, slices = f"requests.{kind}", kind in wanted.slices
        if key not in hard:
            what = kind if slices else "GPU"
            cause = f"it is not there, or does not bound {key}: the team may take every {what} of"
            findings.append(host.broken(subject, f"{cause} its nodes"))
        elif wanted.gpus is not None and parse_quantity(hard[key]) != most:
            what = kind if slices else "GPUs"
            cause = f"it lets the team have {hard[key]} {what}, and {most} are declared"
            fix = f"{host.update}, or write {hard[key]} at {wanted.gpus_path}"
            findings.append(host.broken(subject, cause, fix))
    yield from host.or_well(findings, subject)


def _held(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    """A team whose pods the host's KAI places: a pod of KAI's reserves a shared GPU (T13)."""
    if wanted.mode != "host" or wanted.gpus is None or "pods" in host.unreadable:
        return
    pods = [pod for pod in host.usage.pods if pod.namespace == wanted.namespace]
    held = sum(pod.amounts.gpu for pod in pods if not pod.waits)
    if held > wanted.gpus + 1e-6:
        queue = wanted.queue or "its queue"
        yield host.broken(
            f"GPUs of team {wanted.name}",
            f"its pods hold {held:g}, and {wanted.gpus} are declared: the ResourceQuota does not"
            " count shares of GPUs, and only the queue's limit bounds them",
            f"write gpu.limit: {wanted.gpus} for {queue} at {host.wanted.queues_key}, then"
            f" {host.update}; or raise {wanted.path}.gpus",
        )
