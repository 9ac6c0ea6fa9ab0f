"""What keeps a team from others: labels, quotas, network policies and guards, whole and there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kai_fleet.guards.foreign_nodes import node_bindings
from kai_fleet.guards.host_rules import CONTROL_PLANES
from kai_fleet.guards.policies import (
    BOUNDS,
    ISOLATION_LABEL,
    PolicySet,
    as_annotations,
    kinds,
    policy,
    shared_bindings,
)
from kai_fleet.isolation import network_policies, team_quotas, vcluster_rights
from kai_fleet.isolation.namespace_metadata import namespace_metadata
from kai_fleet.isolation.refused_pods import refused
from kai_fleet.monitoring.scraping import LET_IN
from kai_fleet.settings.quantities import parse_quantity
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.declared import DeclaredTeam
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.guard_objects import unlike
from kai_fleet_cli.doctor.objects import Object, labels_of, name_of, spec

NAME = "isolation"
# What only the guard of queues reads.
_OF_QUEUES: Final = frozenset({"allowed", "podGroups", "sharing", "become", "gpuResource"})
_LEVEL: Final = "pod-security.kubernetes.io/enforce"
_WORD: Final = re.compile("_(.)")


def check(look: Snapshot) -> Iterator[Finding]:
    """Every team whose stack says how it is kept from the others, those of other stacks too."""
    host = look.host
    isolated = [team.wanted.rules for team in look.teams.values() if _isolated(team.wanted)]
    if host.wanted.declared and any(rules is not None for rules in isolated):
        yield from _policies(host)
    for wanted in (team.wanted for team in look.teams.values()):
        isolation = wanted.isolation
        space = host.named("namespaces", wanted.namespace)
        if isolation is None or not isolation.on or space is None:
            continue
        found = [
            *_label(host, wanted, space),
            *_quotas(host, wanted),
            *_network(host, wanted, isolation),
            *_guards(host, wanted, space),
            *_rights(host, wanted),
            *_control_plane(host, wanted),
        ]
        yield from found
        if not found:
            yield host.well(NAME, f"isolation of team {wanted.name}")
        yield from _refused(host, wanted)


def _isolated(wanted: DeclaredTeam) -> bool:
    return wanted.isolation is not None and wanted.isolation.on


def _label(host: ClusterState, wanted: DeclaredTeam, space: Object) -> Iterator[Finding]:
    has = labels_of(space).get(_LEVEL)
    if has != "baseline":
        yield host.broken(
            NAME,
            f"namespace {wanted.namespace}",
            f"its label {_LEVEL} is {has or 'not there'}, and baseline is wanted: with one pod"
            " its tenant is root on the node",
            host.update,
        )
        return
    level = namespace_metadata(wanted)["labels"][ISOLATION_LABEL]
    has = labels_of(space).get(ISOLATION_LABEL)
    if has != level:
        yield host.broken(
            NAME,
            f"namespace {wanted.namespace}",
            f"its label {ISOLATION_LABEL} is {has or 'not there'}, and {level} is wanted: nobody"
            " judges who writes Helm's records and the status of pods there",
            host.update,
        )


def _quotas(host: ClusterState, wanted: DeclaredTeam) -> Iterator[Finding]:
    if "resourcequotas" in host.unreadable:
        return
    matters = {
        "gpus": "it may hold devices that it is not granted",
        "pods": "nothing bounds what its pods take of the host",
        "objects": "nothing bounds its volumes, Services and what it has in etcd",
        "system-priority": "its pods may preempt those of the system",
    }
    every = team_quotas.quotas(wanted)
    for name, declared in every.items():
        subject = f"ResourceQuota {name} in namespace {wanted.namespace}"
        item = host.named("resourcequotas", name, wanted.namespace)
        gpus = f"requests.{wanted.inside.gpu_resource}"  # looked at with the team's GPUs
        if item is None and name != "gpus":
            yield host.broken(NAME, subject, f"it is not there: {matters[name]}", host.update)
        elif item is not None and _amounts(spec(item), gpus) != _amounts(declared, gpus):
            cause = f"it is not as this version declares it: {matters[name]}"
            yield host.broken(NAME, subject, cause, host.update)


def _amounts(quota: Mapping[str, Any], without: str) -> dict[str, Any]:
    hard = quota.get("hard") or {}
    return {key: parse_quantity(value) for key, value in hard.items() if key != without}


def _network(host: ClusterState, wanted: DeclaredTeam, isolation: Isolation) -> Iterator[Finding]:
    if not isolation.network.enabled or "networkpolicies" in host.unreadable:
        return
    own = network_policies.of_team(wanted)
    reach = "its pods reach those of other teams"
    for name, declared in own.items():
        item = host.named("networkpolicies", name, wanted.namespace)
        subject = f"NetworkPolicy {name} in namespace {wanted.namespace}"
        if item is None:
            yield host.broken(NAME, subject, f"it is not there: {reach}", host.update)
        elif spec(item) != _as_sent(declared):
            cause = f"it is not as this version declares it: it may be that {reach}"
            yield host.broken(NAME, subject, cause, host.update)
    inside = wanted.rules is not None and wanted.rules.names_nodes  # its KAI is
    if host.wanted.monitoring is not None and inside:
        own[LET_IN] = {}
        if host.named("networkpolicies", LET_IN, wanted.namespace) is None:
            subject = f"NetworkPolicy {LET_IN} in namespace {wanted.namespace}"
            cause = "it is not there: Prometheus does not reach the team's KAI"
            yield host.broken(NAME, subject, cause, host.update)
    for item in host.within("networkpolicies", wanted.namespace):
        if name_of(item) not in own:
            yield host.warning(
                NAME,
                f"NetworkPolicy {name_of(item)} in namespace {wanted.namespace}",
                "the stack did not declare it, and policies only add what is allowed",
                f"write what it allows at isolation.network, and delete it: `{host.kubectl} -n"
                f" {wanted.namespace} delete networkpolicy {name_of(item)}`",
            )


def _as_sent(declared: Any) -> Any:
    """What an SDK sends for what is declared: keys as the API spells them."""
    if isinstance(declared, Mapping):
        return {_WORD.sub(_upper, key): _as_sent(value) for key, value in declared.items()}
    if isinstance(declared, list):
        return [_as_sent(each) for each in declared]
    return declared


def _upper(found: re.Match[str]) -> str:
    return found.group(1).upper()


def _policies(host: ClusterState) -> Iterator[Finding]:
    """What holds for all teams: a policy that is gone, emptied or not bound denies nothing."""
    of, beside_kai = PolicySet(), host.wanted.release is not None
    policies = [policy(kind, of) for kind in kinds(beside_kai=beside_kai) if kind != "queues"]
    for each in (*policies, *shared_bindings(of, beside_kai=beside_kai).values()):
        for subject, how in unlike(host, each):
            cause = f"{how}: nobody judges as declared what is made in the teams' namespaces"
            yield host.broken(NAME, subject, cause, host.update)


def _guards(host: ClusterState, wanted: DeclaredTeam, space: Object) -> Iterator[Finding]:
    """The team's bounds, and what keeps it off the nodes of others."""
    if wanted.rules is None:  # a team stack does not know what its platform's declares
        return
    has = space["metadata"].get("annotations") or {}
    declared = as_annotations(wanted.rules.parameters())
    changed = sorted(
        key.removeprefix(BOUNDS)
        for key in {*declared, *(key for key in has if key.startswith(BOUNDS))}
        if has.get(key) != declared.get(key) and key.removeprefix(BOUNDS) not in _OF_QUEUES
    )
    if changed:
        yield host.broken(
            NAME,
            f"bounds of namespace {wanted.namespace}",
            f"its annotations {BOUNDS}{{{','.join(changed)}}} are not as this version declares"
            " them: they are what its tenant may have",
            host.update,
        )
    for each in node_bindings(wanted.rules, PolicySet(), wanted.namespace).values():
        for subject, how in unlike(host, each):
            cause = f"{how}: its pods may be on nodes of other teams"
            yield host.broken(NAME, subject, cause, host.update)


def _rights(host: ClusterState, wanted: DeclaredTeam) -> Iterator[Finding]:
    """What its vCluster's account may do outside of its namespace."""
    if "clusterroles" in host.unreadable:
        return
    name = vcluster_rights.called(wanted.name)
    item = host.named("clusterroles", name)
    if item is None:
        cause = "it is not there, so the vCluster cannot read what the host has"
        yield host.broken(NAME, f"ClusterRole {name}", cause, host.update)
        return
    if wanted.rules is None:  # a team stack does not know what its platform's declares
        return
    declared = _as_sent(vcluster_rights.rules(sees_nodes=wanted.rules.names_nodes))
    if item.get("rules") != declared:
        cause = "its rules are not as this version declares them: they are what its tenant may do"
        yield host.broken(NAME, f"ClusterRole {name}", cause, host.update)


def _control_plane(host: ClusterState, wanted: DeclaredTeam) -> Iterator[Finding]:
    """Whether its pods are on nodes of its own, or of the platform (T8)."""
    pool = wanted.control_pool
    for pod in host.within("pods", wanted.namespace):
        labels = labels_of(pod)
        node = host.named("nodes", str(spec(pod).get("nodeName") or ""))
        if labels.get("app") not in CONTROL_PLANES or labels.get("release") != wanted.name:
            continue
        if node is not None and any(labels_of(node).get(k) != v for k, v in pool.items()):
            yield host.broken(
                NAME,
                f"pod {name_of(pod)} in namespace {wanted.namespace}",
                f"the control plane is on node {name_of(node)}, which is not one of"
                f" {', '.join(f'{k}={v}' for k, v in pool.items())}: who is root there owns it",
                f"{host.update}; it moves when its StatefulSet is as declared",
            )


def _refused(host: ClusterState, wanted: DeclaredTeam) -> Iterator[Finding]:
    """Pods that run, and would not be let in again."""
    rules = wanted.rules
    if rules is None:
        return
    nodes = {name_of(node): labels_of(node) for node in host.all("nodes")}
    pods = host.within("pods", wanted.namespace)
    for name, why in refused(pods, rules, nodes).items():
        yield host.warning(
            NAME,
            f"pod {name} in namespace {wanted.namespace}",
            f"it runs, and would be refused if it were made now: {why}",
            "change it where it is made; docs/isolation.md says what is allowed",
        )
