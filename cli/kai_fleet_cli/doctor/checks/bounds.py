"""Checks of what bounds a team on the host: its GPUs, its Secrets, its pods, network policies.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

from collections import defaultdict

from kai_fleet.monitoring.team_monitoring import ALLOW_PROMETHEUS
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.faults import NAME, NAMES, NAMESPACE, Affected, Faults
from kai_fleet_cli.doctor.snapshot import Snapshot, TeamState
from kai_fleet_policies.finding import Command
from kai_usage.amounts import SLACK
from kai_usage.objects import has_labels
from kai_usage.quantities import parse_quantity

NEARLY_FULL = 0.8  # of a quota
TOKEN_ANNOTATION = "vcluster.loft.sh/token-"
# KAI's admission writes it: the name of the ConfigMap of a pod that shares a GPU.
_SHARED_GPU_MAP = "runai/shared-gpu-configmap"
# Prints the names of Secrets that vCluster made for pods and that no pod owns: a pod that was
# deleted before it had a node left them. vCluster's annotation marks them; once the pod is on the
# host it owns its Secret. It prints names only, because a tenant writes the rest of a Secret.
_SECRETS_WITHOUT_POD = (
    "{{range .items}}{{if .metadata.annotations}}"
    '{{if index .metadata.annotations "vcluster.loft.sh/skip-backsync"}}'
    '{{$of := ""}}{{range .metadata.ownerReferences}}{{$of = .kind}}{{end}}'
    '{{if ne $of "Pod"}}{{.metadata.name}} {{end}}'
    "{{end}}{{end}}{{end}}"
)


def too_many_gpus(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a team whose pods hold more GPUs than it is granted.

    Only in mode host, where no ResourceQuota counts shares of GPUs. Nothing if `gpus` is None.
    """
    host = snapshot.host
    team = state.team
    if team.mode != "host" or team.gpus is None:
        return
    held = host.gpus_held_in(team.namespace)
    if held > team.gpus + SLACK:
        yield Affected(host, "team", team.name).broken(
            f"its pods hold {held:g} GPUs, and {team.gpus:g} are declared: the ResourceQuota does"
            " not count shares",
            f"write gpu.limit: {team.gpus:g} for {team.queue} at {host.desired.queues_key}, then ",
            host.update_command,
            f"; or raise {team.gpus_path}",
        )


def secrets(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a warning for a namespace that has more than 80 % of the Secrets that its quota allows.

    ResourceQuota `objects` counts them, in its status. Nothing without it.
    """
    host = snapshot.host
    namespace = state.team.namespace
    quota = host.find("resourcequotas", "objects", namespace)
    status = quota.status if quota is not None else {}
    hard = float(parse_quantity(value_at(status, "hard.secrets") or 0))
    used = float(parse_quantity(value_at(status, "used.secrets") or 0))
    if used > NEARLY_FULL * hard:
        names = f"{host.kubectl} -n {NAME} get secrets -o go-template='{_SECRETS_WITHOUT_POD}'"
        yield Affected(host, "Secrets of namespace", namespace).warning(
            f"are {used:g} of at most {hard:g}: at the bound new pods wait, and no event names the"
            " reason. A pod that was deleted before it had a node left one with its tokens",
            "delete those: ",
            Command(f"{names} | xargs -r {host.kubectl} -n {NAME} delete secret"),
            ", or raise isolation.bounds.objects of the team",
        )


def control_planes(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield control plane pods on nodes that do not belong to the pool for control planes.

    Nothing if the stack declares no such pool. Pods without a node, and those on one that is gone,
    are left out.
    """
    host = snapshot.host
    pool = state.team.control_pool
    for pod in state.control_plane_pods(host):
        node_name = str(pod.spec.get("nodeName") or "")
        node = host.find("nodes", node_name)
        if node is not None and not has_labels(node, pool):
            labels = ", ".join(f"{key}={value}" for key, value in pool.items())
            yield Affected(host, "pod", pod.namespaced_name).broken(
                f"is a control plane on a node without the labels {labels}: who is root there owns"
                " it",
                host.update_command,
            )


def tenants_pods(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield pods of a team on the host that carry tokens in annotations, and, as warnings of check
    `shared-gpu`, pods that have not ended and name the same ConfigMap for their shared GPU.
    """
    host = snapshot.host
    pods_by_map: dict[str, list[str]] = defaultdict(list)
    for pod in host.within("pods", state.team.namespace):
        if any(key.startswith(TOKEN_ANNOTATION) for key in pod.annotations):
            yield Affected(host, "pod", pod.namespaced_name).broken(
                "carries tokens in annotations: control planes with a scheduler of their own read"
                " them, and are that account in this vCluster",
                "have it made anew, which moves the tokens into Secrets: restart what makes it"
                " (inside: ",
                Command("kubectl rollout restart"),
                "), or ",
                host.command(f"-n {NAMESPACE} delete pod {NAMES}"),
            )
        if not pod.has_ended and _SHARED_GPU_MAP in pod.annotations:
            pods_by_map[pod.annotations[_SHARED_GPU_MAP]].append(pod.namespaced_name)
    for config_map, names in pods_by_map.items():
        if len(names) < 2:
            continue
        for name in names:
            yield Affected(host, "pod", name).warning(
                f"names ConfigMap {config_map} in {_SHARED_GPU_MAP}, as others do: each may see the"
                " GPU of the other",
                "have the team make it anew without that annotation: KAI writes it",
                check="shared-gpu",
            )


def undeclared_policies(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a warning for each network policy of an isolated team that the stack does not declare.

    A network policy can only allow more. In a team's own stack the one for Prometheus is the
    platform's.
    """
    host = snapshot.host
    declared = declared_policies(snapshot, state.team.name)
    if not declared:
        return
    if not host.desired.declared:
        declared.add(ALLOW_PROMETHEUS)
    for policy in host.within("networkpolicies", state.team.namespace):
        if policy.name not in declared:
            yield Affected(host, "NetworkPolicy", policy.namespaced_name).warning(
                "the stack does not declare it, and policies only add what is allowed",
                "write what it allows at isolation.network, and delete it: ",
                host.command(f"-n {NAMESPACE} delete networkpolicy {NAMES}"),
            )


def declared_policies(snapshot: Snapshot, team: str) -> set[str]:
    """Return the names of the network policies that `snapshot.required` has for a team.

    Empty if its network is not isolated.
    """
    return {
        required.name
        for required in snapshot.required
        if required.team == team and required.kind == "NetworkPolicy"
    }
