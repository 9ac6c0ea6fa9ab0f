"""GPUs and other devices: only those that a pod asks for, and that its team is granted (T2, T3)."""

from __future__ import annotations

import re
from typing import Final

from kai_fleet.components.guard.queue_guard_rules import names, text
from kai_fleet.components.isolation.rules.model import HostRules
from kai_fleet.components.kai.keys import FRACTION, MEMORY

VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
# What the container runtimes of NVIDIA, AMD and others take for a choice of devices.
DEVICE_VARIABLES: Final = (
    VISIBLE,
    "NVIDIA_MIG_CONFIG_DEVICES",
    "NVIDIA_MIG_MONITOR_DEVICES",
    "NVIDIA_IMEX_CHANNELS",
    "AMD_VISIBLE_DEVICES",
    "HABANA_VISIBLE_DEVICES",
    "ASCEND_VISIBLE_DEVICES",
)
NO_DEVICE: Final = ("", "void", "none")
GPU_NAME: Final = (
    "^(([^/]*[.])?(nvidia|amd|habana)[.](com|ai)|gpu[.]intel[.]com"
    "|deviceclass[.]resource[.]kubernetes[.]io)/|/.*(gpu|mig-)"
)
# Devices of the network, which need no grant. Every other extended resource does: an administrator
# may give a GPU, or a DRA device class, any name.
NETWORK_NAME: Final = (
    "^(rdma|mellanox[.]com|openshift[.]io|vpc[.]amazonaws[.]com|networking[.]gke[.]io([.]networks)?)/"
    "|/[^/]*(rdma|roce|sriov|hca|efa)"
)
# Annotations by which container runtimes, their NRI plugins, CRI-O, Kata and systemd are told to
# give more than the pod's fields say.
RUNTIME_ANNOTATION: Final = (
    "(^|[.-])(cdi[.]k8s|nri)[.]io(/|$)|(^|[.-])noderesource[.]dev(/|$)|^io[.]kubernetes[.]cri-o[.]"
    "|^io[.]katacontainers[.]config[.]|^org[.]systemd[.]property[.]"
)
# What KAI's binder writes: the UUIDs of the GPUs that it reserved.
_UUIDS: Final = "^(([a-z0-9.-]+/gpu=)?(GPU|MIG)-[-0-9A-Za-z/]+(,|$))*$"
SHARED: Final = "runai/shared-gpu-configmap"  # KAI's admission writes it on fraction pods
_BINDER: Final = "system:serviceaccount:kai-scheduler:binder"


def gpus(rules: HostRules) -> list[str]:
    """The devices that are GPUs, of those that the team is granted."""
    first, *others = rules.devices
    return [first, *(name for name in others if re.search(GPU_NAME, name))]


def denied(name: str, rules: HostRules) -> bool:
    """Whether an extended resource is not the team's to ask for."""
    if "/" not in name or name in rules.devices:
        return False
    return bool(re.search(GPU_NAME, name)) or not re.search(NETWORK_NAME, name)


def variables(rules: HostRules) -> dict[str, str]:
    """What the validations share, in CEL."""
    limits, requests = (f"c.?resources.?{part}.orValue({{}})" for part in ("limits", "requests"))
    odd = (
        f"k.contains('/') && !(k in {names(rules.devices)}) && (k.matches({text(GPU_NAME)})"
        f" || !k.matches({text(NETWORK_NAME)}))"
    )
    asks = (
        f"{names(gpus(rules))}.exists(d, d in {limits} && quantity(string({limits}[d]))"
        ".isGreaterThan(quantity('0')))"
    )
    if rules.claims:
        asks += " || size(c.?resources.?claims.orValue([])) > 0"
    from_kai = "false"
    if rules.kai != "none":
        from_kai = (
            f"c.?env.orValue([]).exists(e, e.name == {text(VISIBLE)}"
            f" && {_kai_reference('e', rules)})"
        )
    void = (
        f"c.?env.orValue([]).exists(e, e.name == {text(VISIBLE)}"
        " && e.?value.orValue('') in ['void', 'none'])"
    )
    return {
        "runtime": names(DEVICE_VARIABLES),
        "marks": f"variables.annotations.filter(k, k.matches({text(RUNTIME_ANNOTATION)}))",
        "share": f"{text(SHARED)} in variables.annotations && ({text(FRACTION)} in"
        f" variables.annotations || {text(MEMORY)} in variables.annotations)",
        "odd": f"variables.containers.map(c, ({limits}.map(k, k) + {requests}.map(k, k))"
        f".filter(k, {odd})).filter(found, size(found) > 0)",
        "sharing": f"variables.containers.filter(c, {from_kai})",
        "asking": f"variables.containers.filter(c, {asks} || {from_kai})",
        "unasking": f"variables.containers.filter(c, !({asks} || {from_kai} || {void}))",
        "chosen": "variables.containers.filter(c, c.?env.orValue([])"
        f".exists(e, {_chooses('e', rules)}))",
    }


def _kai_reference(env: str, rules: HostRules) -> str:
    """To the ConfigMap of KAI's binder; on the host to that of the pod's own name, because KAI
    leaves the one of a pod that ended, whose GPU may be another team's by now.
    """
    found = (
        f"{env}.?valueFrom.?configMapKeyRef.?key.orValue('') == {text(VISIBLE)} && variables.share"
    )
    if rules.kai == "host":
        own = f"variables.annotations[?{text(SHARED)}].orValue('') + '-'"
        found += f" && {env}.valueFrom.configMapKeyRef.?name.orValue('').startsWith({own})"
    return found


def _chooses(env: str, rules: HostRules) -> str:
    """Whether a variable chooses devices by itself: not none of them, and not as KAI does."""
    harmless = f"(!has({env}.valueFrom) && {env}.?value.orValue('') in {names(NO_DEVICE)})"
    if rules.kai != "none":
        harmless += f" || ({env}.name == {text(VISIBLE)} && {_kai_reference(env, rules)})"
    return f"{env}.name in variables.runtime && !({harmless})"


def of_pods(rules: HostRules) -> list[tuple[str, str]]:
    """What holds for a pod, with the sentence for one for which it does not."""
    gpu = rules.devices[0]
    granted = ", ".join(rules.devices)
    found = [
        (
            "size(variables.odd) == 0",
            f"' asks for ' + variables.odd[0][0] + {text(f', and the team is granted {granted}')}"
            " + '; ask for that, or have the platform write it in isolation.devices'",
        ),
        (
            "true" if rules.claims else "size(variables.o.spec.?resourceClaims.orValue([])) == 0",
            f"' claims devices by DRA, and the team is granted none; ask for {gpu}, or have the"
            " platform write the device class in isolation.deviceClasses'",
        ),
        (
            "size(variables.chosen) == 0",
            "' chooses its GPUs by itself in container ' + variables.chosen[0].name + '"
            f" ({' or '.join((VISIBLE, 'AMD_VISIBLE_DEVICES'))}); drop the variable and ask for"
            f" {gpu} in resources.limits'",
        ),
        (
            "variables.containers.all(c, c.?envFrom.orValue([]).all(f, f.?prefix.orValue('') == ''"
            " || !variables.runtime.exists(n, n.startsWith(f.prefix))))",
            "' has an envFrom prefix that begins the name of a variable of the GPU runtime; use"
            " another prefix'",
        ),
        (
            "variables.containers.all(c, c.?volumeMounts.orValue([]).all(m,"
            " !m.mountPath.contains('nvidia-container-devices')))",
            "' chooses its GPUs by a mount below nvidia-container-devices; drop it and ask for"
            f" {gpu} in resources.limits'",
        ),
        (
            "size(variables.marks) == 0",
            "' asks the container runtime for devices or rights by its annotation '"
            f" + variables.marks[0] + '; drop it and ask for {gpu} in resources.limits'",
        ),
        (_runtime_class(rules), _shown(gpu)),
    ]
    if rules.kai == "host":
        found.append(
            (
                "size(variables.sharing) <= 1",
                "' takes the GPU of its share in more than one container; leave that variable to"
                " KAI, which writes it in the one that gpu-fraction-container-name names'",
            )
        )
    return found


def _runtime_class(rules: HostRules) -> str:
    named = "variables.o.spec.?runtimeClassName.orValue('')"
    bare = "size(variables.unasking) == 0"
    enough = bare if rules.shared_nodes else f"size(variables.asking) > 0 || {bare}"
    return f"{named} in {names(('', *rules.runtime_classes))} || {enough}"


def _shown(gpu: str) -> str:
    return (
        "' has runtimeClassName ' + variables.o.spec.runtimeClassName + ', which may show every"
        " GPU of the node to container ' + variables.unasking[0].name +"
        f" '; drop it, ask for {gpu}, or write env {VISIBLE}: void there; classes that show none"
        " are those of isolation.runtimeClasses'"
    )


def of_keys(rules: HostRules) -> list[tuple[str, str]]:
    """What holds for ConfigMaps and Secrets, from which a pod may take all variables at once."""
    every = _any("variables.runtime")
    value = f"variables.o.?data[?{text(VISIBLE)}].orValue('')"
    by_kai = {
        "inside": f"{value}.matches({text(_UUIDS)})",
        "host": f"request.userInfo.username == {text(_BINDER)}",
        "none": "false",
    }[rules.kai]
    others = _any(f"variables.runtime.filter(n, n != {text(VISIBLE)})")
    return [
        (
            f"request.resource.resource != 'secrets' || !({every})",
            "' has a key that is a variable of the GPU runtime; name the key otherwise, and ask for"
            " GPUs in resources.limits'",
        ),
        (
            f"request.resource.resource != 'configmaps' || !({every}) || (!({others}) &&"
            f" ({value} in {names(NO_DEVICE)} || {by_kai}))",
            "' has a key that is a variable of the GPU runtime, and not as KAI writes it for a GPU"
            " that it reserved; name the key otherwise, and ask for GPUs in resources.limits'",
        ),
    ]


def _any(keys: str) -> str:
    return f"{keys}.exists(n, n in variables.o.?data.orValue({{}}))"
