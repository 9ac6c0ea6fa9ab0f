"""Pods and other objects as they arrive on a host: written here, from what their makers write."""

import copy
from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
# How a pod of each team is placed when nothing is wrong with it.
PLACED: dict[str, Object] = {
    "ml": {"nodeName": "ml-1"},
    "tight": {"nodeName": "research-1"},
    "vision": {"nodeName": "vision-1"},
    "dev": {"nodeSelector": {"kai-fleet/pool": "dev"}},
    "mig": {"nodeSelector": {"kai-fleet/pool": "spare"}},
    "quiet": {"nodeSelector": {"kai-fleet/pool": "quiet"}},
    "open": {},
    "nlp": {},
    "audio": {},
    "sim": {},
}
RESTRICTED: Object = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def container(name: str = "main", gpus: Any = None, **more: Any) -> Object:
    found: Object = {"name": name, "image": "registry.example/train:1", **more}
    if gpus is not None:
        amount = {GPU: str(gpus)}
        found["resources"] = {"limits": amount, "requests": dict(amount)}
    return found


def pod(
    team: str,
    *containers: Object,
    labels: Object | None = None,
    annotations: Object | None = None,
    name: str = "p",
    **spec: Any,
) -> Object:
    """A pod of a team, placed as its mode places pods, unless `spec` says otherwise."""
    every = [copy.deepcopy(each) for each in containers or (container(),)]
    if team in ("tight", "quiet"):
        for each in every:
            each.setdefault("securityContext", dict(RESTRICTED))
    found = {**PLACED[team], "containers": every, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {key: value for key, value in found.items() if value is not None},
    }


def of_queue(queue: str) -> Object:
    """What makes a pod one of KAI's."""
    return {"labels": {"kai.scheduler/queue": queue}, "schedulerName": "kai-scheduler"}


def fraction(team: str, *sidecars: Object, **more: Any) -> Object:
    """A pod with half a GPU, once KAI's admission has been at it."""
    maps = "train-a-abcdefg-shared-gpu-0"

    def ref(key: str) -> Object:
        return {"name": key, "valueFrom": {"configMapKeyRef": {"name": maps, "key": key}}}

    shared = container(
        env=[ref(VISIBLE), ref("RUNAI_NUM_OF_GPUS"), ref("GPU_PORTION")],
        envFrom=[{"configMapRef": {"name": f"{maps}-evar", "optional": False}}],
    )
    notes = {"gpu-fraction": "0.5", "runai/shared-gpu-configmap": "train-a-abcdefg-shared-gpu"}
    more.setdefault("labels", {})
    more.setdefault("name", "train-a")
    if team != "nlp":  # a KAI inside bound it before it got here; the host's has not yet
        more["labels"]["runai-gpu-group"] = "0f1e2d3c"
    more["labels"].setdefault("kai.scheduler/queue", "nlp" if team == "nlp" else "top")
    more.setdefault("schedulerName", "kai-scheduler")
    more.setdefault("runtimeClassName", "nvidia")
    return pod(team, shared, *sidecars, annotations=notes, **more)


def _line(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("v").split(".")[:2])


def _owner(version: str) -> str:
    """Of KAI's images: the project moved with v0.14."""
    return "nvidia" if _line(version) < (0, 14) else "kai-scheduler"


def scaling(team: str, version: str) -> Object:
    """KAI's pod by which a cluster's autoscaler sees a pod with a share that waits, as synced.

    It asks for whole GPUs of the default scheduler, with the affinity, tolerations and selector of
    the pod that waits.
    """
    main = container(
        "scaling-pod", gpus=1, image=f"ghcr.io/{_owner(version)}/kai-scheduler/scalingpod:{version}"
    )
    main["imagePullPolicy"] = "IfNotPresent"
    made = pod(
        team,
        labels={
            "app": "scaling-pod",
            "shared-gpu-pod-name": "half",
            "shared-gpu-pod-namespace": "default",
        },
        annotations={"vcluster.loft.sh/namespace": "kai-scale-adjust"},
        name="default-half-x-kai-scale-adjust-x-ml",
        restartPolicy="OnFailure",
    )
    made["spec"]["containers"] = [main]
    return made


def reservation(team: str, version: str = "v0.9.3", **more: Any) -> Object:
    """KAI's pod that holds the GPU that others share, as each line writes it, and vCluster syncs.

    v0.7 gives it no RuntimeClass; from v0.13 it asks by requests as well as limits; from v0.17 it
    has the tolerations of the pod that it is for.
    """
    line = _line(version)

    def field(name: str, path: str) -> Object:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    main: Object = {
        "name": "resource-reservation",
        "image": f"ghcr.io/{_owner(version)}/kai-scheduler/resourcereservation:{version}",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": {GPU: "1"}},
        # vCluster writes what the downward API would say of the host's pod.
        "env": [
            field("POD_NAME", "metadata.annotations['vcluster.loft.sh/name']"),
            field("POD_NAMESPACE", "metadata.annotations['vcluster.loft.sh/namespace']"),
        ],
        "securityContext": {},
    }
    if line >= (0, 13):
        main["resources"]["requests"] = {GPU: "1"}
    spec: Object = dict(PLACED[team])
    if line >= (0, 9):
        spec["runtimeClassName"] = "nvidia"
    if line >= (0, 17):
        spec["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "gpu-reservation-ml-0-abcde-x-kai-resource-reservation-x-ml",
            "labels": {"app": "kai-resource-reservation", "runai-gpu-group": "0f1e2d3c"},
            "annotations": {
                "karpenter.sh/do-not-disrupt": "true",
                "vcluster.loft.sh/namespace": "kai-resource-reservation",
            },
        },
        "spec": {**spec, "containers": [main], **more},
    }


def component(team: str, part: str = "binder", version: str = "v0.9.3") -> Object:
    """A part of KAI inside a vCluster, as it arrives on the host."""
    main = {
        "name": part,
        "image": f"ghcr.io/{_owner(version)}/kai-scheduler/{part}:{version}",
        "args": ["--leader-elect=false"],
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True},
    }
    return pod(team, main, labels={"app": part}, name=f"{part}-7d9c-x-kai-scheduler-x-{team}")


def core_dns(team: str) -> Object:
    """CoreDNS as vCluster declares it, once `podSecurityStandard` is set."""
    main = {
        "name": "coredns",
        "image": "coredns/coredns:1.12.1",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [{"containerPort": 1053, "name": "dns", "protocol": "UDP"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1001,
            "runAsGroup": 1001,
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    return pod(
        team,
        main,
        labels={"k8s-app": "vcluster-kube-dns"},
        name=f"coredns-5b8-x-kube-system-x-{team}",
        securityContext={"seccompProfile": {"type": "RuntimeDefault"}},
        volumes=[{"name": "config-volume", "configMap": {"name": "coredns"}}],
    )


def control_plane(team: str) -> Object:
    """The pod template of vCluster's StatefulSet (v0.36.1), as a pod of its own would be."""
    main = {
        "name": "syncer",
        "image": "ghcr.io/loft-sh/vcluster-oss:0.36.1",
        "securityContext": {"allowPrivilegeEscalation": False, "runAsUser": 0, "runAsGroup": 0},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return {
        "metadata": {"labels": {"app": "vcluster", "release": team}},
        "spec": {
            "serviceAccountName": f"vc-{team}",
            "nodeSelector": {"kai-fleet/pool": "platform"},
            "containers": [main],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    }


def claim(node: str | None = None) -> Object:
    """A claim of a local volume, with the node that a scheduler chose for it."""
    chosen = {"annotations": {"volume.kubernetes.io/selected-node": node}} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "cache", **chosen},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "local",
        },
    }


def _workload(kind: str, name: str, template: Object, **spec: Any) -> Object:
    labels = template["metadata"]["labels"]
    pod_template = {key: template[key] for key in ("metadata", "spec")}
    pod_template["metadata"] = {"labels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {}},
        "spec": {"selector": {"matchLabels": labels}, "template": pod_template, **spec},
    }


def stateful_set(team: str, template: Object) -> Object:
    """Of a vCluster, as its chart makes it; nothing runs in it."""
    return _workload("StatefulSet", team, template, serviceName=team, replicas=0)


def scaled_down(kind: str, team: str) -> Object:
    """A Deployment or StatefulSet of a vCluster's control plane; nothing runs in it."""
    template = control_plane(team)
    if kind == "Deployment":
        whole = _workload("Deployment", "work", template)
    else:
        whole = stateful_set(team, template)
    whole["spec"]["replicas"] = 0
    return whole


def probing(team: str) -> Iterator[tuple[str, Object]]:
    """Pods whose node is to connect elsewhere: by each probe and hook that has a host."""
    for how in ({"httpGet": {"path": "/", "port": 80}}, {"tcpSocket": {"port": 80}}):
        [(kind, fields)] = how.items()
        to = {kind: {**fields, "host": "10.0.0.1"}}
        found = {
            **{
                f"{name}Probe": {f"{name}Probe": to}
                for name in ("liveness", "readiness", "startup")
            },
            **{name: {"lifecycle": {name: to}} for name in ("postStart", "preStop")},
        }
        for name, more in found.items():
            yield f"{name}.{kind}", pod(team, container(**more))
            sidecar = container("s", restartPolicy="Always", **more)
            if team in ("tight", "quiet"):
                sidecar["securityContext"] = dict(RESTRICTED)
            yield f"{name}.{kind} of a sidecar", pod(team, initContainers=[sidecar])
