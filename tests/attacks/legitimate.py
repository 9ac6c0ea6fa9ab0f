"""What has to pass: the guides' pods, KAI's parts of every version, and common GPU work."""

import json
from dataclasses import dataclass
from typing import Any

from kai_fleet.releases import KAI
from tests.attacks.objects import (
    PLACED,
    RESTRICTED,
    VISIBLE,
    Object,
    claim,
    component,
    config_map,
    container,
    core_dns,
    endpoint_slice,
    endpoints,
    fraction,
    of_queue,
    pod,
    reservation,
    scaling,
    secret,
    service,
)

EVERY_MODE = ("ml", "nlp", "dev")
_CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
VOID = [{"name": VISIBLE, "value": "void"}]


@dataclass(frozen=True)
class Allowed:
    """An object that each of the teams may make."""

    name: str
    teams: tuple[str, ...]
    body: Any

    def objects(self) -> list[tuple[str, Object]]:
        return [(team, self.body(team)) for team in self.teams]


def _queued(team: str) -> Object:
    return of_queue("nlp" if team == "nlp" else "top")


def _secure(body: Object) -> Object:
    for each in body["spec"]["containers"]:
        each["securityContext"] = dict(RESTRICTED)
    return body


def _vllm(team: str) -> Object:
    """A vLLM server with a fraction, its cache and shared memory."""
    made = fraction(team)
    main = made["spec"]["containers"][0]
    main |= {
        "image": "vllm/vllm-openai:v0.11.0",
        "args": ["--model", "Qwen/Qwen2.5-1.5B-Instruct", "--gpu-memory-utilization=0.5"],
        "ports": [{"containerPort": 8000}],
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
    }
    memory = {"medium": "Memory", "sizeLimit": "8Gi"}
    made["spec"]["volumes"] = [{"name": "shm", "emptyDir": memory}]
    return made


def _ray_worker(team: str) -> Object:
    """KubeRay's worker: a whole GPU, and an init container that waits for the head."""
    return pod(
        team,
        container("ray-worker", gpus=1, ports=[{"containerPort": 8080, "name": "metrics"}]),
        initContainers=[container("wait-gcs-ready", command=["/bin/bash", "-lc", "--"])],
        labels={**_queued(team)["labels"], "ray.io/node-type": "worker"},
        schedulerName="kai-scheduler",
        volumes=[{"name": "ray-logs", "emptyDir": {}}],
    )


def _array(team: str) -> Object:
    """A pod of an indexed Job."""
    index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-index']"}}
    return pod(
        team,
        container(gpus=1, env=[{"name": "INDEX", "valueFrom": index}]),
        annotations={"batch.kubernetes.io/job-completion-index": "3"},
        restartPolicy="Never",
        **_queued(team),
    )


ALLOWED = [
    # The guides: halves and whole GPUs, with and without KAI.
    Allowed("guide 000: half a GPU", ("ml", "nlp"), fraction),
    Allowed(
        "guide 000: a whole GPU", ("ml", "nlp"), lambda t: pod(t, container(gpus=1), **_queued(t))
    ),
    Allowed(
        "guide 001: nvidia-smi with the runtime class",
        ("ml", "nlp", "dev"),
        lambda t: pod(
            t, container(gpus=1), runtimeClassName="nvidia", **(_queued(t) if t != "dev" else {})
        ),
    ),
    Allowed("guide 002: a pod without KAI", EVERY_MODE, lambda t: pod(t)),
    Allowed(
        "guide 003: a job of a department",
        ("ml", "nlp"),
        lambda t: pod(t, container(gpus=1), restartPolicy="Never", **_queued(t)),
    ),
    Allowed("guide 004: a vLLM server", ("ml", "nlp"), _vllm),
    Allowed(
        "GPU memory in place of a fraction",
        ("ml", "nlp"),
        lambda t: _in_memory(fraction(t)),
    ),
    Allowed(
        "a sidecar that sees no GPU",
        ("ml", "nlp"),
        lambda t: fraction(t, container("log", env=VOID)),
    ),
    Allowed("a sidecar on nodes of its own", ("ml",), lambda t: fraction(t, container("log"))),
    Allowed("a Ray worker", ("ml", "nlp"), _ray_worker),
    Allowed("a Ray head without GPUs", EVERY_MODE, lambda t: pod(t, container("ray-head"))),
    Allowed("a pod of a Job array", ("ml", "nlp"), _array),
    Allowed("a whole GPU of the default scheduler", ("dev",), lambda t: pod(t, container(gpus=1))),
    Allowed("two GPUs at once", ("ml", "dev"), lambda t: pod(t, container(gpus=2))),
    Allowed("a MIG device that is granted", ("mig",), lambda t: _mig(t)),
    Allowed("no GPU, said by void", EVERY_MODE, lambda t: pod(t, container(env=VOID))),
    Allowed(
        "no GPU, said by none",
        EVERY_MODE,
        lambda t: pod(t, container(env=[{"name": VISIBLE, "value": "none"}])),
    ),
    Allowed(
        "KAI's priorities",
        ("nlp",),
        lambda t: pod(t, container(gpus=1), priorityClassName="train", **_queued(t)),
    ),
    Allowed(
        "what KAI has users write",
        ("nlp",),
        lambda t: _noted(pod(t, container(gpus=1), **_queued(t))),
    ),
    Allowed("an application of Spark", ("nlp",), lambda t: _spark(t, f"spark-{'0f' * 16}")),
    Allowed("an application of Spark that is named", ("nlp",), lambda t: _spark(t, f"{t}.mine")),
    Allowed(
        "variables from a ConfigMap that is called like KAI's",
        EVERY_MODE,
        lambda t: pod(t, container(envFrom=[{"configMapRef": {"name": "my-shared-gpu-config"}}])),
    ),
    Allowed("a priority that is granted", ("mig",), lambda t: pod(t, priorityClassName="batch")),
    Allowed(
        "variables from a ConfigMap with a prefix",
        EVERY_MODE,
        lambda t: pod(t, container(envFrom=[{"prefix": "APP_", "configMapRef": {"name": "c"}}])),
    ),
    Allowed(
        "a service mesh's annotations",
        EVERY_MODE,
        lambda t: pod(
            t, annotations={"sidecar.istio.io/inject": "true", "prometheus.io/port": "1"}
        ),
    ),
    Allowed(
        "an RDMA device",
        EVERY_MODE,
        lambda t: pod(t, container(resources={"limits": {"rdma/hca": "1"}})),
    ),
    Allowed(
        "an adapter of a cloud's network",
        EVERY_MODE,
        lambda t: pod(t, container(resources={"limits": {"vpc.amazonaws.com/efa": "4"}})),
    ),
    Allowed(
        "half a GPU in the second container, and none in the first",
        ("nlp",),
        lambda t: _behind(fraction(t), container("first", env=VOID)),
    ),
    Allowed(
        "a claim of a device class that is granted",
        ("mig",),
        lambda t: pod(
            t,
            container(resources={"claims": [{"name": "small"}]}),
            resourceClaims=[{"name": "small", "resourceClaimName": "mine"}],
        ),
    ),
    Allowed(
        "a pod away from others of the team, as vCluster translates it",
        EVERY_MODE,
        lambda t: pod(t, affinity={"podAntiAffinity": _apart("team-" + t)}),
    ),
    Allowed(
        "a probe with a grace period of its own",
        EVERY_MODE,
        lambda t: pod(
            t,
            container(
                livenessProbe={"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": 60}
            ),
        ),
    ),
    Allowed(
        "a pod whose name only begins like the control plane's",
        EVERY_MODE,
        lambda t: pod(t, name=f"{t}-0-x-default-x-{t}"),
    ),
    Allowed(
        "a pod that waits, and tolerates a taint of its own",
        (*EVERY_MODE, "sim"),
        lambda t: pod(
            t,
            schedulingGates=[{"name": "example.com/wait"}],
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
            nodeName=None,
            nodeSelector={"kai-fleet/pool": "ml"} if t == "ml" else PLACED[t].get("nodeSelector"),
        ),
    ),
    Allowed("a runtime without GPUs", EVERY_MODE, lambda t: pod(t, runtimeClassName="kata")),
    Allowed(
        "KAI's runtime class, every container void",
        EVERY_MODE,
        lambda t: pod(t, container(env=VOID), runtimeClassName="nvidia"),
    ),
    Allowed(
        "labels of an application called release",
        EVERY_MODE,
        lambda t: pod(t, labels={"app": "web", "release": t}),
    ),
    # KAI's parts, in every supported version.
    *(
        Allowed(f"reservation pod of {v}", ("ml", "tight"), lambda t, v=v: reservation(t, v))
        for v in KAI
    ),
    *(
        Allowed(f"scaling pod of {v}", ("ml", "tight"), lambda t, v=v: scaling(t, v))
        for v in ("v0.9.20", "v0.16.8")
    ),
    *(
        Allowed(f"binder of {v}", ("ml", "tight"), lambda t, v=v: component(t, "binder", v))
        for v in KAI
    ),
    *(
        Allowed(f"{part} of v0.16.8", ("ml", "tight"), lambda t, p=part: component(t, p, "v0.16.8"))
        for part in ("operator", "admission", "podgrouper", "scheduler", "queuecontroller")
    ),
    Allowed("CoreDNS", ("ml", "dev", "tight", "nlp"), core_dns),
    # What `restricted` wants, and the exceptions that it has.
    Allowed("restricted: a conforming pod", ("tight",), lambda t: pod(t)),
    Allowed("restricted: a conforming whole GPU", ("tight",), lambda t: pod(t, container(gpus=1))),
    Allowed("restricted: half a GPU", ("tight",), fraction),
    Allowed("restricted: a vLLM server", ("tight",), lambda t: _secure(_vllm(t))),
    Allowed("restricted: the pod's context for all", ("tight",), lambda t: _of_pod(t)),
    # Other kinds.
    Allowed(
        "what KAI's binder writes inside", ("ml",), lambda _: config_map(**{VISIBLE: "GPU-1-a"})
    ),
    Allowed(
        "two GPUs of KAI's binder", ("ml",), lambda _: config_map(**{VISIBLE: "GPU-1-a,GPU-2-b"})
    ),
    Allowed(
        "a MIG device of KAI's binder", ("ml",), lambda _: config_map(**{VISIBLE: "MIG-3f-22"})
    ),
    Allowed(
        "KAI's ConfigMap before it is filled", EVERY_MODE, lambda _: config_map(**{VISIBLE: ""})
    ),
    Allowed("a ConfigMap", EVERY_MODE, lambda _: config_map(**{"app.yaml": "a: 1"})),
    Allowed("a Secret", EVERY_MODE, lambda _: secret(token="x")),
    Allowed("a ClusterIP", EVERY_MODE, lambda _: service()),
    Allowed(
        "a name from outside, where that is granted",
        ("mig",),
        lambda _: service(type="ExternalName", externalName="db.example.com", selector=None),
    ),
    Allowed("an address of IPv6 from outside", EVERY_MODE, lambda _: endpoints("2606:4700::1111")),
    Allowed(
        "a slice of names, where that is granted",
        ("mig",),
        lambda _: endpoint_slice("db.example.com", kind="FQDN"),
    ),
    Allowed(
        "an hour to end, for a checkpoint",
        EVERY_MODE,
        lambda t: pod(t, terminationGracePeriodSeconds=3600),
    ),
    Allowed(
        "two hours to end, where that is granted",
        ("mig",),
        lambda t: pod(t, terminationGracePeriodSeconds=7200),
    ),
    Allowed(
        "a share of memory by NRI, where that is granted",
        ("mig",),
        lambda t: pod(t, annotations={"class.memory-qos.nri.io": "high"}),
    ),
    Allowed(
        "a role of the cloud by kube2iam, where that is granted",
        ("mig",),
        lambda t: pod(t, annotations={"iam.amazonaws.com/role": "mig"}),
    ),
    Allowed(
        "a volume of the network, where that is granted",
        ("mig",),
        lambda t: pod(t, volumes=[{"name": "n", "nfs": {"server": "s", "path": "/"}}]),
    ),
    *(
        Allowed(
            f"a volume: {next(iter(source))}",
            EVERY_MODE,
            lambda t, s=source: pod(t, volumes=[{"name": "v", **s}]),
        )
        for source in (
            {"persistentVolumeClaim": {"claimName": "c"}},
            {"projected": {"sources": [{"configMap": {"name": "c"}}]}},
            {"ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}}},
            {"csi": {"driver": "secrets-store.csi.k8s.io", "readOnly": True}},
        )
    ),
    *(
        Allowed(
            f"CUDA's own choice among its GPUs by {name}",
            ("ml", "dev"),
            lambda t, n=name: pod(t, container(gpus=2, env=[{"name": n, "value": "0"}])),
        )
        for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    ),
    Allowed("a Secret of a chart that is no record", EVERY_MODE, lambda _: secret(release="x")),
    Allowed(
        "the toleration that the platform gives the team",
        ("sim",),
        lambda t: pod(
            t,
            tolerations=[
                {"key": "kai-fleet/pool", "value": "sim", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
            ],
        ),
    ),
    Allowed(
        "a team of its own choosing on nodes by their labels",
        ("nlp", "sim"),
        lambda t: pod(
            t,
            nodeSelector={"nvidia.com/gpu.product": "A100"},
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
        ),
    ),
    Allowed(
        "a synced pod that begins like the control plane's",
        ("nlp", "sim"),
        lambda t: pod(t, name=f"{t}-0-x-default-x-{t}"),
    ),
    Allowed("an address from outside", EVERY_MODE, lambda _: endpoints("8.8.8.8")),
    Allowed("a slice from outside", EVERY_MODE, lambda _: endpoint_slice("8.8.8.8")),
    Allowed(
        "its queue on what owns its pods",
        ("nlp",),
        lambda _: _of_nlp(config_map(a="b")),
    ),
    Allowed("a claim", EVERY_MODE, lambda _: claim()),
    Allowed("a claim, placed by its scheduler", ("ml",), lambda _: claim("ml-2")),
    Allowed("a LoadBalancer", EVERY_MODE, lambda _: service(type="LoadBalancer")),
    # Where the isolation is off, nothing of it stands.
    Allowed(
        "off: privileged",
        ("open",),
        lambda t: pod(t, container(securityContext={"privileged": True}), hostPID=True),
    ),
    Allowed(
        "off: all GPUs",
        ("open",),
        lambda t: pod(
            t, container(env=[{"name": VISIBLE, "value": "all"}]), runtimeClassName="nvidia"
        ),
    ),
]


def _behind(body: Object, first: Object) -> Object:
    """With another container before that of the share, whose ConfigMaps KAI counts."""
    spec = json.loads(json.dumps(body["spec"]).replace("shared-gpu-0", "shared-gpu-1"))
    spec["containers"].insert(0, first)
    return {**body, "spec": spec}


def _apart(namespace: str) -> Object:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    wish = {"weight": 1, "podAffinityTerm": {**term, "namespaces": [namespace]}}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [wish],
    }


def _of_nlp(body: Object) -> Object:
    body["metadata"]["labels"] = {"kai.scheduler/queue": "nlp"}
    return body


def _noted(body: Object) -> Object:
    """KAI's labels and annotations of batch jobs, topologies and priorities."""
    own = {"preemptibility": "preemptible", "node-pool": "a", "task-priority": "1"}
    body["metadata"]["labels"] |= {f"kai.scheduler/{key}": value for key, value in own.items()}
    body["metadata"]["labels"]["priorityClassName"] = "train"
    for key in ("topology", "topology-required-placement", "batch-min-member", "segment-size"):
        body["metadata"]["annotations"][f"kai.scheduler/{key}"] = "2"
    return body


def _spark(team: str, name: str) -> Object:
    body = pod(team, container(gpus=1), **_queued(team))
    body["metadata"]["labels"] |= {"spark-app-name": "x", "spark-app-selector": name}
    return body


def _in_memory(body: Object) -> Object:
    notes = body["metadata"]["annotations"]
    del notes["gpu-fraction"]
    notes["gpu-memory"] = "2000"
    return body


def _mig(team: str) -> Object:
    asked = {"nvidia.com/mig-1g.10gb": "1"}
    main = container(resources={"limits": asked, "requests": dict(asked)})
    return pod(team, main, runtimeClassName="nvidia")


def _of_pod(team: str) -> Object:
    """Run-as and seccomp on the pod; the rest is of containers only."""
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return pod(team, container(securityContext=own), securityContext=context)
