"""Pods that run in a team's namespace and would be refused there, if they were made now.

By the guards' own policies and by Pod Security, which an API server asks only about what is made
and changed. What a sum decides (quotas) is not looked at. `tests/unit/test_refused_pods.py` holds
it to the attacks that it denies.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kai_fleet.guards import evaluation
from kai_fleet.guards.host_rules import CONTROL_PLANES, HostRules, foreign_nodes
from kai_fleet.guards.policies import BESIDE_KAI, Kind, Object

_OF_PODS: Final[tuple[Kind, ...]] = ("devices", "pods", "traffic")
# What a KAI beside the team adds to a pod after it was made.
_OF_KAI: Final = re.compile(
    r"(runai-gpu-group(/.*)?|received-resource-type|pod-group-name"
    r"|kai[.]scheduler/(subgroup-name|numa-placement-.*))$"
)
# Of Pod Security.
_HOST_NAMESPACES: Final = ("hostNetwork", "hostPID", "hostIPC")
_CAPABILITIES: Final = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_SELINUX: Final = frozenset(
    ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
)
_SYSCTLS: Final = frozenset(
    (
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range"),
        *("net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout"),
        *("net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"),
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem"),
        *("net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem"),
    )
)
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


def refused(
    pods: Iterable[Mapping[str, Any]], rules: HostRules, nodes: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """The reason by the name of each pod that runs and would be refused.

    `nodes` are labels by the name of each node; one that is missing is not judged.
    """
    reasons = {}
    for pod in pods:
        over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if over or pod["metadata"].get("deletionTimestamp"):
            continue
        if why := next(_reasons(pod, rules, nodes), None):
            name = str(pod["metadata"]["name"])
            reason = why.removeprefix(f"pod {name} ")  # whoever says it names the pod
            reasons[name] = why if reason == why else f"it {reason}"
    return reasons


def _reasons(
    pod: Mapping[str, Any], rules: HostRules, nodes: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    yield from _baseline(pod)
    space = f"team-{rules.team}"
    control = _of_control_plane(pod, rules)
    user = evaluation.controller() if control else evaluation.account(space, f"vc-{rules.team}")
    request = evaluation.creation("pods", space, user, str(pod["metadata"]["name"]))
    bounds = rules.parameters()
    made = _as_made(pod, rules, control=control)
    for kind in (*_OF_PODS, *(BESIDE_KAI if rules.beside_kai else ())):
        yield from evaluation.refusals(kind, made, request, bounds)
    node = str(pod["spec"].get("nodeName") or "")
    if node in nodes and not control and _foreign(nodes[node], rules):
        yield f"it is on node {node}, which is none of the team's"


def _of_control_plane(pod: Mapping[str, Any], rules: HostRules) -> bool:
    labels = pod["metadata"].get("labels") or {}
    owners = pod["metadata"].get("ownerReferences") or []
    return (
        labels.get("app") in CONTROL_PLANES
        and labels.get("release") == rules.team
        and any(it.get("kind") in ("StatefulSet", "ReplicaSet") for it in owners)
    )


def _as_made(pod: Mapping[str, Any], rules: HostRules, *, control: bool) -> Object:
    """The pod as whoever made it wrote it: its scheduler gave it a node, KAI its group, and network
    plugins their annotations.
    """
    spec = dict(pod["spec"])
    if control or not rules.names_nodes:
        spec.pop("nodeName", None)
    if control:  # by its StatefulSet or Deployment, which the update declares
        spec["nodeSelector"] = dict(rules.control_pool or rules.pool)
    metadata = dict(pod["metadata"])
    for notes in ("labels", "annotations"):
        metadata[notes] = {
            key: value
            for key, value in (metadata.get(notes) or {}).items()
            if not (rules.beside_kai and _OF_KAI.match(key))
        }
    rest = {key: value for key, value in pod.items() if key != "status"}
    return {**rest, "metadata": metadata, "spec": spec}


def _foreign(labels: Mapping[str, str], rules: HostRules) -> bool:
    if rules.pool:
        return any(labels.get(key) != value for key, value in rules.pool.items())
    return any(_selects(selector, labels) for selector in foreign_nodes(rules))


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    named = (selector.get("matchLabels") or {}).items()
    among = selector.get("matchExpressions") or []
    return all(labels.get(key) == value for key, value in named) and all(
        labels.get(it["key"]) in it["values"] for it in among
    )


def _baseline(pod: Mapping[str, Any]) -> Iterator[str]:
    """Each field by which a pod violates Pod Security's level `baseline`, which the API server asks
    only about what is made and changed.
    """
    spec = pod["spec"]
    yield from (f"it has {field}: true" for field in _HOST_NAMESPACES if spec.get(field))
    for volume in spec.get("volumes") or []:
        if "hostPath" in volume:
            yield f"its volume {volume.get('name')} is a hostPath"
    yield from _context("the pod", spec.get("securityContext") or {})
    for sysctl in (spec.get("securityContext") or {}).get("sysctls") or []:
        if sysctl.get("name") not in _SYSCTLS:
            yield f"it sets the sysctl {sysctl.get('name')}"
    for key, value in (pod["metadata"].get("annotations") or {}).items():
        allowed = value == "runtime/default" or value.startswith("localhost/")
        if key.startswith(_APP_ARMOR) and value and not allowed:
            yield f"its annotation {key} is {value}"
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for each in spec.get(kind) or []:
            yield from _container(each)


def _container(each: Mapping[str, Any]) -> Iterator[str]:
    name, context = f"container {each.get('name')}", each.get("securityContext") or {}
    if context.get("privileged"):
        yield f"its {name} is privileged"
    added = (context.get("capabilities") or {}).get("add") or []
    if beyond := sorted(set(added) - _CAPABILITIES):
        yield f"its {name} adds the capability {beyond[0]}"
    for port in each.get("ports") or []:
        if port.get("hostPort"):
            yield f"its {name} has the hostPort {port['hostPort']}"
    if context.get("procMount") not in (None, "Default"):
        yield f"its {name} has procMount {context['procMount']}"
    yield from _context(name, context)


def _context(name: str, context: Mapping[str, Any]) -> Iterator[str]:
    """What a pod's security context and a container's have in common."""
    if (context.get("seccompProfile") or {}).get("type") == "Unconfined":
        yield f"{name} has seccompProfile.type Unconfined"
    if (context.get("appArmorProfile") or {}).get("type") == "Unconfined":
        yield f"{name} has appArmorProfile.type Unconfined"
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield f"{name} has windowsOptions.hostProcess: true"
    linux = context.get("seLinuxOptions") or {}
    if linux.get("type", "") not in _SELINUX or linux.get("user") or linux.get("role"):
        yield f"{name} has seLinuxOptions of its own"
