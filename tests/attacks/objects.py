"""Pods and other objects as they arrive on a host: written here, from what their makers write."""

import copy
from collections.abc import Iterator
from typing import Any

import yaml

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
# CoreDNS as vCluster declares it, once `podSecurityStandard` is set; the pod template of vCluster's
# StatefulSet (v0.36.1), as a pod of its own would be; the containers of KAI's pods, as synced.
WRITTEN = """
CoreDNS:
  name: coredns
  image: coredns/coredns:1.12.1
  args: [-conf, /etc/coredns/Corefile]
  ports: [{containerPort: 1053, name: dns, protocol: UDP}]
  securityContext:
    runAsNonRoot: true
    runAsUser: 1001
    runAsGroup: 1001
    allowPrivilegeEscalation: false
    capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}
    readOnlyRootFilesystem: true
  volumeMounts: [{name: config-volume, mountPath: /etc/coredns, readOnly: true}]
control plane:
  metadata: {labels: {app: vcluster, release: TEAM}}
  spec:
    serviceAccountName: vc-TEAM
    nodeSelector: {kai-fleet/pool: platform}
    containers:
      - name: syncer
        image: ghcr.io/loft-sh/vcluster-oss:0.36.1
        securityContext: {allowPrivilegeEscalation: false, runAsUser: 0, runAsGroup: 0}
        volumeMounts: [{name: data, mountPath: /data}]
    volumes: [{name: data, emptyDir: {}}]
reservation:
  name: resource-reservation
  image: ghcr.io/OWNER/kai-scheduler/resourcereservation:VERSION
  imagePullPolicy: IfNotPresent
  resources: {limits: {nvidia.com/gpu: "1"}}
  # vCluster writes what the downward API would say of the host's pod.
  env:
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: "metadata.annotations['vcluster.loft.sh/name']"}}
    - name: POD_NAMESPACE
      valueFrom: {fieldRef: {fieldPath: "metadata.annotations['vcluster.loft.sh/namespace']"}}
  securityContext: {}
component:
  name: PART
  image: ghcr.io/OWNER/kai-scheduler/PART:VERSION
  args: [--leader-elect=false]
  ports: [{containerPort: 8080}]
  resources: {requests: {cpu: 50m, memory: 64Mi}}
  securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true}
scaling:
  name: scaling-pod
  image: ghcr.io/OWNER/kai-scheduler/scalingpod:VERSION
  imagePullPolicy: IfNotPresent
  resources: {limits: {nvidia.com/gpu: "1"}, requests: {nvidia.com/gpu: "1"}}
"""


def written(name: str, version: str = "v0.9.3", **more: str) -> Object:
    """One of these. KAI's images have another owner since the project moved, with v0.14."""
    text = WRITTEN
    owner = "nvidia" if _line(version) < (0, 14) else "kai-scheduler"
    for key, value in {"VERSION": version, "OWNER": owner, **more}.items():
        text = text.replace(key, value)
    found: Object = yaml.safe_load(text)[name]
    return found


def _line(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("v").split(".")[:2])


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
    labels = {"kai.scheduler/queue": "nlp" if team == "nlp" else "top", **more.pop("labels", {})}
    if team != "nlp":  # a KAI inside bound it before it got here; the host's has not yet
        labels["runai-gpu-group"] = "0f1e2d3c"
    own = {"name": "train-a", "schedulerName": "kai-scheduler", "runtimeClassName": "nvidia"}
    return pod(team, shared, *sidecars, annotations=notes, labels=labels, **{**own, **more})


def scaling(team: str, version: str) -> Object:
    """KAI's pod by which a cluster's autoscaler sees a pod with a share that waits, as synced.

    It asks for whole GPUs of the default scheduler, with the affinity, tolerations and selector of
    the pod that waits.
    """
    of = {"shared-gpu-pod-name": "half", "shared-gpu-pod-namespace": "default"}
    created = pod(
        team,
        labels={"app": "scaling-pod", **of},
        annotations={"vcluster.loft.sh/namespace": "kai-scale-adjust"},
        name="default-half-x-kai-scale-adjust-x-ml",
        restartPolicy="OnFailure",
    )
    created["spec"]["containers"] = [written("scaling", version)]
    return created


def reservation(team: str, version: str = "v0.9.3") -> Object:
    """KAI's pod that holds the GPU that others share, as each line writes it, and vCluster syncs.

    v0.7 gives it no RuntimeClass; from v0.13 it asks by requests as well as limits; from v0.17 it
    has the tolerations of the pod that it is for.
    """
    line, main = _line(version), written("reservation", version)
    if line >= (0, 13):
        main["resources"]["requests"] = {GPU: "1"}
    spec: Object = {"runtimeClassName": "nvidia"} if line >= (0, 9) else {}
    if line >= (0, 17):
        spec["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    notes = {"karpenter.sh/do-not-disrupt": "true"}
    return pod(
        team,
        main,
        name="gpu-reservation-ml-0-abcde-x-kai-resource-reservation-x-ml",
        labels={"app": "kai-resource-reservation", "runai-gpu-group": "0f1e2d3c"},
        annotations={**notes, "vcluster.loft.sh/namespace": "kai-resource-reservation"},
        **spec,
    )


def component(team: str, part: str = "binder", version: str = "v0.9.3") -> Object:
    """A part of KAI inside a vCluster, as it arrives on the host."""
    main = written("component", version, PART=part)
    return pod(team, main, labels={"app": part}, name=f"{part}-7d9c-x-kai-scheduler-x-{team}")


def core_dns(team: str) -> Object:
    return pod(
        team,
        written("CoreDNS"),
        labels={"k8s-app": "vcluster-kube-dns"},
        name=f"coredns-5b8-x-kube-system-x-{team}",
        securityContext={"seccompProfile": {"type": "RuntimeDefault"}},
        volumes=[{"name": "config-volume", "configMap": {"name": "coredns"}}],
    )


def control_plane(team: str) -> Object:
    return written("control plane", TEAM=team)


def claim(node: str | None = None) -> Object:
    """A claim of a local volume, with the node that a scheduler chose for it."""
    chosen = {"annotations": {"volume.kubernetes.io/selected-node": node}} if node else {}
    size = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": size, "storageClassName": "local"}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, "metadata": {"name": "cache", **chosen}, "spec": spec}


def _workload(kind: str, name: str, template: Object, **spec: Any) -> Object:
    labels = template["metadata"]["labels"]
    pods = {"metadata": {"labels": labels}, "spec": template["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {}},
        "spec": {"selector": {"matchLabels": labels}, "template": pods, "replicas": 0, **spec},
    }


def stateful_set(team: str) -> Object:
    """Of a vCluster, as its chart makes it; nothing runs in it."""
    return _workload("StatefulSet", team, control_plane(team), serviceName=team)


def deployment(team: str) -> Object:
    """Of a vCluster's control plane; nothing runs in it."""
    return _workload("Deployment", "work", control_plane(team))


def probing(team: str) -> Iterator[tuple[str, Object]]:
    """Pods whose node is to connect elsewhere: by each probe and hook that has a host."""
    for kind, fields in (("httpGet", {"path": "/", "port": 80}), ("tcpSocket", {"port": 80})):
        to = {kind: {**fields, "host": "10.0.0.1"}}
        found: Object = {f"{item}Probe": to for item in ("liveness", "readiness", "startup")}
        for name, more in (
            *((key, {key: value}) for key, value in found.items()),
            *((item, {"lifecycle": {item: to}}) for item in ("postStart", "preStop")),
        ):
            yield f"{name}.{kind}", pod(team, container(**more))
            sidecar = container("s", restartPolicy="Always", **more)
            if team in ("tight", "quiet"):
                sidecar["securityContext"] = dict(RESTRICTED)
            yield f"{name}.{kind} of a sidecar", pod(team, initContainers=[sidecar])
