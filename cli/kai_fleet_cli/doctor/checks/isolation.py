"""What keeps a team from others: labels, quotas, network policies and guards, whole and there."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards import policies
from kai_fleet.guards.host_rules import HostRules, node_bindings
from kai_fleet.guards.policies import ENFORCED, kinds
from kai_fleet.isolation import network_policies, team_quotas, vcluster_rights
from kai_fleet.isolation.refused_pods import refused
from kai_fleet.kube.objects import KubeObject
from kai_fleet.monitoring import ALLOW_PROMETHEUS
from kai_fleet.quantities import parse_quantity
from kai_fleet_cli.doctor.checks.guards import unlike
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot

# What only the guard of queues reads.
_OF_QUEUES: Final = frozenset({"allowed", "podGroups", "sharing", "become", "gpuResource"})
_QUOTAS: Final = {  # what a team may do without each
    "gpus": "it may hold devices that it is not granted",
    "pods": "nothing bounds what its pods take of the host",
    "objects": "nothing bounds its volumes, Services and what it has in etcd",
    "system-priority": "its pods may preempt those of the system",
}
_NEARLY: Final = Decimal("0.8")  # of a bound
# Names alone: a tenant writes the rest. By this annotation vCluster marks a Secret with tokens of a
# pod, which owns it once it is on the host.
_OF_NO_POD: Final = (
    "{{range .items}}{{if .metadata.annotations}}"
    '{{if index .metadata.annotations "vcluster.loft.sh/skip-backsync"}}'
    '{{$of := ""}}{{range .metadata.ownerReferences}}{{$of = .kind}}{{end}}'
    '{{if ne $of "Pod"}}{{.metadata.name}} {{end}}{{end}}{{end}}{{end}}'
)
TOKEN_ANNOTATION: Final = "vcluster.loft.sh/token-"
_REACH: Final = "its pods reach those of other teams"


def check(snapshot: Snapshot) -> Findings:
    """Every team whose stack says how it is kept from the others, those of other stacks too."""
    host = snapshot.host
    for team in snapshot.teams.values():
        yield from _noted(host, team.wanted)
    isolated = [team.wanted for team in snapshot.teams.values() if team.wanted.isolated]
    if host.wanted.declared and any(wanted.rules is not None for wanted in isolated):
        yield from _shared_policies(host)
    for wanted in isolated:
        space = host.named("namespaces", wanted.namespace)
        if space is None:
            continue
        yield from host.or_well(
            (
                *_labels(host, wanted, space),
                *_quotas(host, wanted),
                *_secrets(host, wanted),
                *_network(host, wanted),
                *_bounds(host, wanted, space),
                *_rights(host, wanted),
                *_control_plane(host, wanted),
            ),
            f"isolation of team {wanted.name}",
        )
        yield from _tokens(host, wanted)
        if wanted.rules is not None:
            yield from _refused_pods(host, wanted, wanted.rules)


def _labels(host: ClusterState, wanted: DeclaredTeam, space: KubeObject) -> Findings:
    """The first label of the namespace that is not as wanted."""
    for label, value, harm in (
        (ENFORCED, "baseline", "with one pod its tenant is root on the node"),
        (
            policies.ISOLATION_LABEL,
            wanted.level,
            "nobody judges who writes Helm's records and the status of pods there",
        ),
    ):
        has = space.labels.get(label)
        if has != value:
            yield host.broken(
                f"namespace {wanted.namespace}",
                f"its label {label} is {has or 'not there'}, and {value} is wanted: {harm}",
            )
            return


def _noted(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    """The labels and annotations by which others know whose the namespace is."""
    space = host.named("namespaces", wanted.namespace)
    if space is None:
        return
    for kind, declared, has in (
        ("label", wanted.labels, space.labels),
        ("annotation", wanted.annotations, space.annotations),
    ):
        for key, value in declared.items():
            if has.get(key) != value:
                yield host.warning(
                    f"namespace {wanted.namespace}",
                    f"its {kind} {key} is {has.get(key) or 'not there'}, and {value or 'empty'} is"
                    " declared: who counts or admits by it takes the namespace for another's",
                    host.update,
                )


def _quotas(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    if "resourcequotas" in host.unreadable:
        return
    gpus = [f"requests.{kind}" for kind in wanted.kinds]  # `gpu_quota` looks at these
    for name, declared in team_quotas.quotas(wanted).items():
        subject = f"ResourceQuota {name} in namespace {wanted.namespace}"
        item = host.named("resourcequotas", name, wanted.namespace)
        if item is None and name != "gpus":
            yield host.broken(subject, f"it is not there: {_QUOTAS[name]}")
        elif item is not None and _amounts(item.spec, gpus) != _amounts(declared, gpus):
            yield host.broken(subject, f"it is not as this version declares it: {_QUOTAS[name]}")


def _secrets(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    """Whether there is room for pods' tokens: those of a pod that never had a node stay (0008)."""
    item = host.named("resourcequotas", "objects", wanted.namespace)
    status = item.status if item is not None else {}
    hard, used = (
        parse_quantity((status.get(it) or {}).get("secrets", 0)) for it in ("hard", "used")
    )
    if used > _NEARLY * hard:
        kubectl = f"{host.kubectl} -n {wanted.namespace}"
        yield host.warning(
            f"Secrets in namespace {wanted.namespace}",
            f"there are {used} of at most {hard}: at the bound new pods wait, and no event says"
            " why. A pod that was deleted before it had a node left one with its tokens",
            f"delete those: `{kubectl} get secrets -o go-template='{_OF_NO_POD}' | xargs -r"
            f" {kubectl} delete secret`, or raise isolation.bounds.objects of the team",
        )


def _tokens(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    """Pods made before tokens were in Secrets: control planes with a scheduler list these."""
    carrying = [
        pod.name
        for pod in host.within("pods", wanted.namespace)
        if any(key.startswith(TOKEN_ANNOTATION) for key in pod.annotations)
    ]
    if carrying:
        yield host.broken(
            f"tokens of team {wanted.name}",
            f"{len(carrying)} of its pods carry them in annotations, {carrying[0]} among them: the"
            " control plane of each team whose scheduler is inside its vCluster reads them, and is"
            " that account in this one",
            "have the pods made anew, which brings the tokens into Secrets: restart what makes them"
            f" (inside: `kubectl rollout restart`), and `{host.kubectl} -n {wanted.namespace}"
            f" delete pod {carrying[0]}` where nothing else does",
        )


def _amounts(quota: Mapping[str, Any], without: Sequence[str]) -> dict[str, Any]:
    hard = quota.get("hard") or {}
    return {key: parse_quantity(value) for key, value in hard.items() if key not in without}


def _network(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    isolation = wanted.isolation
    if isolation is None or not isolation.network.enabled or "networkpolicies" in host.unreadable:
        return
    declared = network_policies.of_team(wanted)
    subject = f"NetworkPolicy {{}} in namespace {wanted.namespace}"
    there = {item.name: item for item in host.within("networkpolicies", wanted.namespace)}
    for name, policy in declared.items():
        if name not in there:
            yield host.broken(subject.format(name), f"it is not there: {_REACH}")
        elif there[name].spec != _as_sent(policy):
            cause = f"it is not as this version declares it: it may be that {_REACH}"
            yield host.broken(subject.format(name), cause)
    has_kai = wanted.rules is not None and wanted.rules.names_nodes  # inside
    monitored = {ALLOW_PROMETHEUS} if host.wanted.monitoring is not None and has_kai else set()
    for name in monitored - there.keys():
        cause = "it is not there: Prometheus does not reach the team's KAI"
        yield host.broken(subject.format(name), cause)
    for name in there:
        if name not in declared.keys() | monitored:
            yield host.warning(
                subject.format(name),
                "the stack did not declare it, and policies only add what is allowed",
                f"write what it allows at isolation.network, and delete it: `{host.kubectl} -n"
                f" {wanted.namespace} delete networkpolicy {name}`",
            )


def _as_sent(declared: Any) -> Any:
    """What an SDK sends for what is declared: keys as the API spells them."""
    if isinstance(declared, Mapping):
        return {
            re.sub("_(.)", lambda match: match[1].upper(), key): _as_sent(value)
            for key, value in declared.items()
        }
    return [_as_sent(each) for each in declared] if isinstance(declared, list) else declared


def _shared_policies(host: ClusterState) -> Findings:
    """What holds for all teams: a policy that is gone, emptied or not bound denies nothing."""
    beside_kai = host.wanted.release is not None
    declared = [policies.policy(it) for it in kinds(beside_kai=beside_kai) if it != "queues"]
    for each in (*declared, *policies.shared_bindings(beside_kai=beside_kai).values()):
        for subject, how in unlike(host, each):
            cause = f"{how}: nobody judges as declared what is made in the teams' namespaces"
            yield host.broken(subject, cause)


def _bounds(host: ClusterState, wanted: DeclaredTeam, space: KubeObject) -> Findings:
    """The team's bounds, and what keeps it off the nodes of others."""
    if wanted.rules is None:  # a team stack does not know what its platform's declares
        return
    has, prefix = space.annotations, policies.BOUNDS
    declared = policies.as_annotations(wanted.rules.parameters())
    changed = sorted(
        key.removeprefix(prefix)
        for key in {*declared, *(key for key in has if key.startswith(prefix))}
        if has.get(key) != declared.get(key) and key.removeprefix(prefix) not in _OF_QUEUES
    )
    if changed:
        yield host.broken(
            f"bounds of namespace {wanted.namespace}",
            f"its annotations {prefix}{{{','.join(changed)}}} are not as this version declares"
            " them: they are what its tenant may have",
        )
    bindings = node_bindings(wanted.rules, wanted.namespace)
    for each in bindings.values():
        for subject, how in unlike(host, each):
            yield host.broken(subject, f"{how}: its pods may be on nodes of other teams")


def _rights(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    """What its vCluster's account may do outside of its namespace."""
    if "clusterroles" in host.unreadable:
        return
    name = vcluster_rights.called(wanted.name)
    item = host.named("clusterroles", name)
    if item is None:
        cause = "it is not there, so the vCluster cannot read what the host has"
        yield host.broken(f"ClusterRole {name}", cause)
    elif wanted.rules is not None:  # a team stack does not know what its platform's declares
        declared = vcluster_rights.on_host(sees_nodes=wanted.rules.names_nodes)
        if item.get("rules") != _as_sent(declared):
            cause = "its rules are not as this version declares them"
            yield host.broken(f"ClusterRole {name}", f"{cause}: they are what its tenant may do")


def _control_plane(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    """Whether its pods are on nodes of its own, or of the platform (T8)."""
    pool = wanted.control_pool
    for pod in host.control_plane_pods(wanted):
        node = host.named("nodes", str(pod.spec.get("nodeName") or ""))
        if node is not None and any(node.labels.get(k) != v for k, v in pool.items()):
            yield host.broken(
                pod.pod_subject,
                f"the control plane is on node {node.name}, which is not one of"
                f" {', '.join(f'{k}={v}' for k, v in pool.items())}: who is root there owns it",
                f"{host.update}; it moves when its StatefulSet is as declared",
            )


def _refused_pods(host: ClusterState, wanted: DeclaredTeam, rules: HostRules) -> Findings:
    """Pods that run, and would not be let in again."""
    nodes = {node.name: node.labels for node in host.all("nodes")}
    for name, why in refused(host.within("pods", wanted.namespace), rules, nodes).items():
        yield host.warning(
            f"pod {name} in namespace {wanted.namespace}",
            f"it runs, and would be refused if it were made now: {why}",
            "change it where it is made; docs/isolation.md says what is allowed",
        )
