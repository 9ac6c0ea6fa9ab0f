"""GPUs that were not asked for, or not granted (T2, T3, T11)."""

from typing import Any

from tests.attacks.attempts.attempt import EVERY_MODE, Attempt, env
from tests.attacks.objects import (
    VISIBLE,
    Object,
    config_map,
    container,
    fraction,
    of_queue,
    pod,
    secret,
)


def _annotated(key: str) -> Any:
    return lambda team: pod(team, annotations={key: "x"})


def _whole(team: str, *, gpus: Any = 1, **more: Any) -> Object:
    extra = of_queue("nlp") if team == "nlp" else {}
    return pod(team, container(gpus=gpus), **{**extra, **more})


def _gpu_named(name: str, amount: str = "1") -> Any:
    asked = {name: amount}
    return lambda team: pod(
        team,
        container(resources={"limits": asked, "requests": dict(asked)}),
        **(of_queue("nlp") if team == "nlp" else {}),
    )


_ASK = "ask for nvidia.com/gpu in resources.limits"
_DEV = "isolation.devices"
_MAPS = {"name": "own", "key": VISIBLE}


def _with_env(body: Object, env: Object) -> Object:
    body["spec"]["containers"][0]["env"][0] = env
    return body


def _optional(body: Object, name: str) -> Object:
    ref = {"name": name, "key": VISIBLE, "optional": True}
    return _with_env(body, env(configMapKeyRef=ref))


def _without(body: Object, annotation: str) -> Object:
    del body["metadata"]["annotations"][annotation]
    return body


GPUS = [
    # GPUs that nobody asked for.
    Attempt("all GPUs", EVERY_MODE, lambda t: pod(t, container(env=[env("all")])), _ASK),
    Attempt("a GPU by index", EVERY_MODE, lambda t: pod(t, container(env=[env("0")])), _ASK),
    Attempt("a GPU by UUID", EVERY_MODE, lambda t: pod(t, container(env=[env("GPU-1")])), _ASK),
    Attempt(
        "all GPUs beside one that was asked for",
        ("ml", "dev"),
        lambda t: pod(t, container(gpus=1, env=[env("all")])),
        _ASK,
    ),
    Attempt(
        "all GPUs, in the second of two entries",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env("void"), env("all")])),
        _ASK,
    ),
    Attempt(
        "all GPUs in an init container",
        EVERY_MODE,
        lambda t: pod(t, initContainers=[container("init", env=[env("all")])]),
        _ASK,
    ),
    Attempt(
        "all GPUs by another variable",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env("all", "X"), env("$(X)")])),
        _ASK,
    ),
    Attempt(
        "GPUs of AMD's runtime",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env("all", "AMD_VISIBLE_DEVICES")])),
        _ASK,
    ),
    Attempt(
        "MIG devices to configure",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env("all", "NVIDIA_MIG_CONFIG_DEVICES")])),
        _ASK,
    ),
    Attempt(
        "GPUs by a Secret",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env(secretKeyRef=_MAPS)])),
        _ASK,
    ),
    Attempt(
        "GPUs by an annotation of its own",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env(fieldRef={"fieldPath": "metadata.annotations['x']"})])),
        _ASK,
    ),
    Attempt(
        "GPUs by a ConfigMap of its own, without KAI",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env(configMapKeyRef=_MAPS)])),
        _ASK,
    ),
    Attempt(
        "GPUs by another key of KAI's ConfigMap",
        ("ml", "nlp"),
        lambda t: _with_env(fraction(t), env(configMapKeyRef={"name": "c", "key": "other"})),
        _ASK,
    ),
    # Where the ConfigMap is missing, the image says which: those of NVIDIA's say all.
    Attempt(
        "GPUs that the image names, by a ConfigMap that is missing",
        ("ml", "nlp"),
        lambda t: _optional(fraction(t), "train-a-abcdefg-shared-gpu-0"),
        _ASK,
    ),
    *(
        Attempt(
            f"the ConfigMap that another container of a pod that ended has left: {end}",
            ("nlp",),
            lambda t, e=end: _with_env(
                fraction(t),
                env(configMapKeyRef={"name": f"train-a-abcdefg-shared-gpu-{e}", "key": VISIBLE}),
            ),
            _ASK,
        )
        for end in ("1", "i0", "mine")
    ),
    Attempt(
        "every GPU of a node beside a claim of another device",
        ("mig",),
        lambda t: pod(
            t,
            container(resources={"claims": [{"name": "nic"}]}),
            resourceClaims=[{"name": "nic", "resourceClaimName": "mine"}],
            runtimeClassName="nvidia",
        ),
        "ask for nvidia.com/gpu",
    ),
    Attempt("KAI's reference where no KAI is", ("dev",), fraction, _ASK),
    Attempt(
        "KAI's reference without a share",
        ("ml", "nlp"),
        lambda t: _without(fraction(t), "gpu-fraction"),
        _ASK,
    ),
    Attempt(
        "a ConfigMap for all GPUs",
        EVERY_MODE,
        lambda _: config_map(**{VISIBLE: "all"}),
        "name the key otherwise",
    ),
    Attempt(
        "a ConfigMap for a GPU by index",
        EVERY_MODE,
        lambda _: config_map(**{VISIBLE: "0,1"}),
        "name the key otherwise",
    ),
    Attempt(
        "a ConfigMap for a GPU by UUID, where the host's KAI gives them",
        ("nlp", "dev"),
        lambda _: config_map(**{VISIBLE: "GPU-3a0b"}),
        "name the key otherwise",
    ),
    Attempt(
        "a Secret to take the variable from",
        EVERY_MODE,
        lambda _: secret(**{VISIBLE: "all"}),
        "name the key otherwise",
    ),
    Attempt(
        "a prefix that makes the variable's name",
        EVERY_MODE,
        lambda t: pod(
            t,
            container(envFrom=[{"prefix": "NVIDIA_VISIBLE_", "configMapRef": {"name": "c"}}]),
        ),
        "use another prefix",
    ),
    Attempt(
        "GPUs by a mount",
        EVERY_MODE,
        lambda t: pod(
            t,
            container(
                volumeMounts=[{"name": "v", "mountPath": "/var/run/nvidia-container-devices/all"}]
            ),
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
        _ASK,
    ),
    Attempt(
        "a CDI device",
        EVERY_MODE,
        lambda t: pod(t, annotations={"cdi.k8s.io/gpus": "nvidia.com/gpu=all"}),
        _ASK,
    ),
    Attempt(
        "a CDI device of NVIDIA's runtime",
        EVERY_MODE,
        lambda t: pod(t, annotations={"nvidia.cdi.k8s.io/gpus": "nvidia.com/gpu=all"}),
        _ASK,
    ),
    Attempt(
        "a device by NRI",
        EVERY_MODE,
        lambda t: pod(t, annotations={"devices.nri.io/container.main": "- path: /dev/nvidia0"}),
        _ASK,
    ),
    Attempt(
        "the runtime class of GPUs without one",
        EVERY_MODE,
        lambda t: pod(t, runtimeClassName="nvidia"),
        "ask for nvidia.com/gpu",
    ),
    Attempt(
        "the runtime class with no GPU asked for",
        ("ml", "dev"),
        lambda t: pod(t, container(gpus=0), runtimeClassName="nvidia"),
        "ask for nvidia.com/gpu",
    ),
    Attempt(
        "a second container that sees every GPU of a shared node",
        ("nlp", "dev"),
        lambda t: _whole(t, gpus=1, runtimeClassName="nvidia", initContainers=[container("peek")]),
        "write env NVIDIA_VISIBLE_DEVICES: void",
    ),
    Attempt(
        "a second container beside a fraction",
        ("nlp",),
        lambda t: fraction(t, container("peek")),
        "write env NVIDIA_VISIBLE_DEVICES: void",
    ),
    # GPUs under other names, and more than granted.
    Attempt("a MIG device", EVERY_MODE, _gpu_named("nvidia.com/mig-1g.10gb"), "isolation.devices"),
    Attempt("a shared GPU", EVERY_MODE, _gpu_named("nvidia.com/gpu.shared"), "isolation.devices"),
    Attempt("another vendor's GPU", EVERY_MODE, _gpu_named("amd.com/gpu"), "isolation.devices"),
    Attempt("Intel's GPU", EVERY_MODE, _gpu_named("gpu.intel.com/i915"), "isolation.devices"),
    Attempt("a renamed GPU", EVERY_MODE, _gpu_named("example.com/vgpu"), "isolation.devices"),
    Attempt(
        "a device class as a resource",
        EVERY_MODE,
        _gpu_named("deviceclass.resource.kubernetes.io/gpu"),
        "isolation.devices",
    ),
    Attempt(
        "a DRA claim",
        EVERY_MODE,
        lambda t: pod(
            t,
            container(resources={"claims": [{"name": "gpu"}]}),
            resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}],
        ),
        "isolation.deviceClasses",
    ),
    Attempt(
        "more MIG devices than granted",
        ("mig",),
        _gpu_named("nvidia.com/mig-1g.10gb", "3"),
        "exceeded quota: gpus",
    ),
    Attempt("more GPUs than granted", ("ml",), lambda t: _whole(t, gpus=9), "exceeded quota: gpus"),
    Attempt("a GPU of a team without", ("mig",), lambda t: _whole(t), "exceeded quota: gpus"),
    Attempt(
        "a GPU beside the queues",
        ("nlp", "audio"),
        lambda t: pod(t, container(gpus=1)),
        "write schedulerName: kai-scheduler",
    ),
    Attempt(
        "another team's queue",
        ("nlp",),
        lambda t: pod(t, container(gpus=1), **of_queue("audio")),
        "write the label kai.scheduler/queue: nlp",
    ),
    Attempt(
        "a queue that only begins like the team's",
        ("audio",),
        lambda t: pod(t, container(gpus=1), **of_queue("audiobook")),
        "write the label kai.scheduler/queue: audio",
    ),
    *(
        Attempt(f"{what} by an annotation", EVERY_MODE, _annotated(key), "drop it and ask for")
        for what, key in (
            ("a device of every container by NRI", "devices.nri.io"),
            ("a device by NRI's new name", "devices.noderesource.dev/container.main"),
            ("a CDI device by NRI", "cdi-devices.noderesource.dev/pod"),
            ("a mount of the node by NRI", "mounts.nri.io/container.main"),
            ("a device of CRI-O", "io.kubernetes.cri-o.Devices"),
            ("a hypervisor of Kata", "io.katacontainers.config.hypervisor.path"),
            ("a property of systemd", "org.systemd.property.SuccessAction"),
        )
    ),
    Attempt(
        "a CDI device, later",
        EVERY_MODE,
        lambda t: pod(t),
        "drop it and ask for",
        change=("", {"metadata": {"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=all"}}}),
    ),
    Attempt(
        "GPUs by a runtime class of another name",
        EVERY_MODE,
        lambda t: pod(t, runtimeClassName="fast"),
        "isolation.runtimeClasses",
    ),
    Attempt(
        "all GPUs in a debugging container",
        EVERY_MODE,
        lambda t: pod(t),
        _ASK,
        change=(
            "ephemeralcontainers",
            {"spec": {"ephemeralContainers": [container("debug", env=[env("all")])]}},
        ),
    ),
    Attempt(
        "all GPUs in a sidecar",
        EVERY_MODE,
        lambda t: pod(t, initContainers=[container("s", restartPolicy="Always", env=[env("all")])]),
        _ASK,
    ),
    Attempt(
        "GPUs by a field of the pod",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env(fieldRef={"fieldPath": "metadata.name"})])),
        _ASK,
    ),
    Attempt(
        "GPUs by a resource's amount",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env(resourceFieldRef={"resource": "limits.cpu"})])),
        _ASK,
    ),
    Attempt(
        "GPUs of Habana's runtime",
        EVERY_MODE,
        lambda t: pod(t, container(env=[env("all", "HABANA_VISIBLE_DEVICES")])),
        _ASK,
    ),
    Attempt(
        "the rest of the name by a prefix",
        EVERY_MODE,
        lambda t: pod(t, container(envFrom=[{"prefix": "N", "secretRef": {"name": "c"}}])),
        "use another prefix",
    ),
    Attempt(
        "a ConfigMap for all GPUs, later",
        EVERY_MODE,
        lambda _: config_map(a="b"),
        "name the key otherwise",
        change=("", {"data": {VISIBLE: "all"}}),
    ),
    Attempt(
        "all GPUs behind a UUID",
        EVERY_MODE,
        lambda _: config_map(**{VISIBLE: "GPU-1-a,all"}),
        "name the key otherwise",
    ),
    Attempt(
        "IMEX channels by a ConfigMap",
        EVERY_MODE,
        lambda _: config_map(NVIDIA_IMEX_CHANNELS="0"),
        "name the key otherwise",
    ),
    Attempt(
        "a GPU as a device of smarter", EVERY_MODE, _gpu_named("smarter-devices/nvidia0"), _DEV
    ),
    Attempt("Huawei's NPU", EVERY_MODE, _gpu_named("huawei.com/Ascend910"), _DEV),
    Attempt("a TPU", EVERY_MODE, _gpu_named("google.com/tpu"), _DEV),
    Attempt(
        "a device class by a name of its own", EVERY_MODE, _gpu_named("example.com/fast"), _DEV
    ),
    Attempt(
        "a DRA claim by a template",
        EVERY_MODE,
        lambda t: pod(
            t,
            container(resources={"claims": [{"name": "gpu"}]}),
            resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "mine"}],
        ),
        "isolation.deviceClasses",
    ),
    Attempt(
        "every GPU of a node beside a device that is granted",
        ("mig",),
        lambda t: pod(
            t,
            container(resources={"limits": {"example.com/nic": "1"}}),
            runtimeClassName="nvidia",
        ),
        "ask for nvidia.com/gpu",
    ),
]
