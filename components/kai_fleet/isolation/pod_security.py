"""Pod Security's level `baseline`, as a plain function about pods that run.

An API server judges what is made and changed. Before a namespace gets its level, what runs there is
read with this; `tests/unit/test_refused_pods.py` holds it to the attacks that it denies.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

Object = Mapping[str, Any]

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
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")


def containers_of(spec: Object) -> list[Object]:
    """Every container of a pod, init and ephemeral ones too."""
    kinds = ("containers", "initContainers", "ephemeralContainers")
    return [each for kind in kinds for each in spec.get(kind) or []]


def baseline(pod: Object) -> Iterator[str]:
    """Each field by which a pod violates `baseline`."""
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
    for each in containers_of(spec):
        yield from _container(each)


def _container(each: Object) -> Iterator[str]:
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
    hooks = each.get("lifecycle") or {}
    for probe in (*map(each.get, _PROBES), *map(hooks.get, _HOOKS)):
        for how in ("httpGet", "tcpSocket"):
            if host := ((probe or {}).get(how) or {}).get("host"):
                yield f"its {name} has a probe or hook with the host {host}"


def _context(name: str, context: Object) -> Iterator[str]:
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
