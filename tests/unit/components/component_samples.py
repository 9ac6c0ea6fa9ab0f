"""Arguments of components with every field, the same with Outputs, and what a program declares."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pulumi
from pulumi.output import UNKNOWN
from pulumi.runtime import mocks
from pulumi.runtime.stack import wait_for_rpcs

from kai_fleet_cli.plan.recorder import Registered, record
from tests.unit.cli.event_loop import finish

VERSION = "v0.16.8"
AUTHORITY = "-----BEGIN CERTIFICATE-----"
TOLERATIONS = [{"key": "gpu", "value": "ml", "operator": "Equal", "effect": "NoSchedule"}]
REGISTRIES = {"registry.example.com": {"username": "puller", "password": "s3cret"}}
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: "https://lab:6443", certificate-authority-data: YQ==}}]
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
users: [{name: lab, user: {token: t0ken}}]
"""

VCLUSTER: dict[str, Any] = {
    "availability": "high",
    "namespace": "team-ml",
    "version": "v0.36.1",
    "mode": "virtual",
    "node_pool": {"pool": "ml"},
    "control_pool": {"pool": "control"},
    "kubernetes_version": "v1.34.4",
    "access": {
        "type": "NodePort",
        "host": "10.0.0.5",
        "port": 30001,
        "annotations": {"example.com/a": "b"},
        "load_balancer_source_ranges": ["10.0.0.0/8"],
    },
    "priority_class_name": "control-planes",
    "replicas": 3,
    "store": {"type": "etcd", "replicas": 3},
    "storage_class": "slow",
    "size": "9Gi",
    "resources": {
        "requests": {"cpu": "1", "ephemeral-storage": "2Gi"},
        "limits": {"memory": "8Gi"},
    },
    "oidc": {
        "issuer": "https://id.example.com",
        "client_id": "kubernetes",
        "username_claim": "email",
        "groups_claim": "roles",
        "ca": AUTHORITY,
    },
    "groups": {"ml-team": "edit", "leads": "admin", "auditors": "view"},
    "isolation": "baseline",
    "tolerations": TOLERATIONS,
    "affinity": {"nodeAffinity": {"a": 1}},
    "image_pull_secrets": ["pull"],
    "registries": REGISTRIES,
    "chart": "oci://registry.example.com/charts/vcluster",
    "chart_account": REGISTRIES["registry.example.com"],
    "labels": {"example.com/cost": "ml"},
    "annotations": {"example.com/note": "n"},
    "licensed": True,
    "values": {"controlPlane": {"proxy": {"port": 8443}}},
    "ready_timeout": 100,
    "stack_key": "kai-fleet:teams.ml",
    "kubeconfig": KUBECONFIG,
}
KAI: dict[str, Any] = {
    "version": VERSION,
    "values": {"global": {"replicas": 2}},
    "gpu_sharing": True,
    "gpu_sharing_mode": "HamiCore",
    "isolation": "restricted",
    "tolerations": TOLERATIONS,
    "affinity": {"nodeAffinity": {"a": 1}},
    "labels": {"example.com/cost": "ml"},
    "registries": REGISTRIES,
    "chart": "oci://registry.example.com/charts/kai-scheduler",
    "chart_account": REGISTRIES["registry.example.com"],
    "shards": {
        "default": {"placement": {"gpu": "spread", "cpu": "binpack"}},
        "gold": {
            "min_runtime": {"preempt": "4h", "reclaim": "1h"},
            "queue_depth": {"allocate": 25},
        },
    },
    "fairshare": {
        "window": "168h",
        "window_type": "tumbling",
        "start": "2026-01-05T00:00:00Z",
        "cron": "0 0 * * 1",
        "half_life": "24h",
        "k_value": 0.5,
        "prometheus": "http://prometheus.monitoring:9090",
    },
    "topologies": {"racks": ["cloud.example/rack", "kubernetes.io/hostname"]},
    "verify": True,
    "ready_timeout": 100,
    "probe_environment": {"PROBE_CONTEXT": "lab", "PROBE_SECRET": "team-ml/vc-ml"},
    "kubeconfig": KUBECONFIG,
}
QUEUES: dict[str, Any] = {
    "queues": {
        "top": {
            "display_name": "Top",
            "priority": 50,
            "cpu": {"quota": 4, "limit": 8.5, "weight": 2},
            "memory": {"quota": "64Gi", "limit": "unlimited", "weight": 1},
            "preempt_min_runtime": "4h",
            "reclaim_min_runtime": "1h",
            "shard": "gold",
            "children": {"train": {"gpu": {"quota": 6, "limit": 7, "weight": 1}}, "build": {}},
        }
    },
    "gpus": 8,
    "pools": {"gold": 8},
    "parent": "team-ml",
    "shared": True,
    "tenants": ["nlp"],
    "cluster": "0d9f",
    "kubeconfig": KUBECONFIG,
}
GPU_STACK: dict[str, Any] = {
    "provider": "device-plugin",
    "version": "0.20.1",
    "values": {"gfd": {"enabled": True}},
    "tolerations": TOLERATIONS,
    "registries": REGISTRIES,
    "chart": "oci://registry.example.com/charts/nvidia-device-plugin",
    "chart_account": REGISTRIES["registry.example.com"],
    "system_priorities": True,
    "in_kind": True,
}
NAMESPACE: dict[str, Any] = {
    "name": "team-ml",
    "guards": "declared",
    "gpus": 6,
    "gpu_resource": "nvidia.com/gpu",
    "slices": {"nvidia.com/mig-1g.10gb": 2},
    "devices": {"rdma/hca": 1},
    "device_classes": {"gpu.example.com": 3},
    "control_pool": {"pool": "control"},
    "foreign_pools": [{"pool": "research"}, {"pool": "control", "zone": "a"}],
    "scheduler": "host",
    "isolation": {
        "level": "restricted",
        "priority_classes": ["night"],
        "runtime_classes": ["gvisor"],
        "annotations": ["memory-qos.nri.io"],
        "volumes": ["nfs"],
        "network": {"private": ["203.0.113.0/24"], "namespaces": ["logging"]},
        "bounds": {
            "cpu": "200",
            "memory": "512Gi",
            "ephemeral_storage": "200Gi",
            "storage": "10Ti",
            "pods": 100,
            "volumes": 10,
            "load_balancers": 2,
            "node_ports": 3,
            "objects": 900,
            "grace_seconds": 60,
        },
    },
    "tolerations": TOLERATIONS,
    "queues": ["ml", "batch"],
    "queue_prefix": "ml-",
    "foreign_queues": ["ml-ops"],
    "queue_refusal": "",
    "host_kai": True,
    "guard": "audit",
    "gpu_sharing": True,
    "nv_fractions": True,
    "kai_images": ["ghcr.io/kai-scheduler/kai-scheduler"],
    "labels": {"example.com/cost": "ml"},
    "annotations": {"example.com/note": "n"},
    "registries": REGISTRIES,
    "vcluster_version": "v0.36.1",
    "vcluster_values": {"sync": {"toHost": {"ingresses": {"enabled": True}}}},
    "account": True,
    "monitoring": {
        "namespace": "monitoring",
        "certificates": True,
        "interval": "1m",
        "labels": {"release": "prometheus"},
        "scheduler": True,
        "parent_queues": ["top"],
    },
}
BACKUP: dict[str, Any] = {
    "to": "s3:https://s3.example.com/bucket",
    "schedule": "0 */6 * * *",
    "keep": 28,
    "namespace": "backups",
    "secret": "kai-fleet-backup",
    "verify": "0 4 * * 0",
    "account_annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/backups"},
    "node_selector": {"pool": "platform"},
    "kubectl_image": "mirror.example.com/alpine/k8s:1.34.1",
    "restic_image": "mirror.example.com/restic/restic:0.18.1",
    "vcluster_namespace": "team-ml",
    "vcluster_version": "v0.36.1",
    "vcluster_image": "mirror.example.com/loft-sh/vcluster-oss:0.36.1",
    "kubernetes_image": "mirror.example.com/loft-sh/kubernetes:v1.36.0",
}
TEAM: dict[str, Any] = {
    "vcluster": VCLUSTER,
    "kai": {
        key: item for key, item in KAI.items() if key not in ("probe_environment", "kubeconfig")
    },
    "queues": {key: QUEUES[key] for key in ("queues", "gpus", "pools")},
    "guard": {
        "mode": "audit",
        "outside": "warn",
        "gpu_resource": "nvidia.com/gpu",
    },
    "backup": BACKUP,
}


def known(value: Any) -> pulumi.Output[Any]:
    """An Output of which a preview knows the value."""
    return pulumi.Output.from_input(value)


def unknown(_: Any) -> pulumi.Output[Any]:
    """One of which it does not."""
    return pulumi.Output.from_input(True).apply(lambda _: UNKNOWN)


def fields(kind: Any) -> dict[str, Any]:
    """The types of the fields of an Args; the SDK's own alias is of names of its module."""
    return typing.get_type_hints(kind, localns={"Output": pulumi.Output, "T": Any})


def with_outputs(kind: Any, value: Any, created: Callable[[Any], Any]) -> Any:
    """The arguments with an Output for each field and item that may be one."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):  # of pulumi.Input
        mapping = typing.get_origin(inner[0]) is Mapping
        return with_outputs(inner[0], value, created) if mapping else created(value)
    if origin is Mapping:
        return {key: with_outputs(inner[1], item, created) for key, item in value.items()}
    if origin is Sequence:
        return [with_outputs(inner[0], item, created) for item in value]
    if typing.is_typeddict(kind):
        hints = fields(kind)
        return {key: with_outputs(hints[key], item, created) for key, item in value.items()}
    return value


def declared(program: Callable[[], Any]) -> dict[str, Registered]:
    """What a program declares, by the last part of each type and the name."""
    found = record("lab", {}, program=program)
    return {f"{item.type.rpartition(':')[2]} {item.name}": item for item in found}


def inputs(found: dict[str, Registered]) -> dict[str, Any]:
    """What the resources are given; numbers have one form on the wire."""
    return {name: item.inputs for name, item in found.items()}


def run_by(
    engine: mocks.Mocks,
    program: Callable[[], Any],
    *,
    preview: bool = False,
    monitor: mocks.MockMonitor | None = None,
) -> Any:
    """Run a program in an update or a preview by an engine, to its end; what it returns is awaited
    if it can be.
    """

    async def running() -> Any:
        pulumi.runtime.reset_options()  # else what a failed program left would be waited for
        mocks.set_mocks(
            engine,
            project="kai-fleet",
            stack="lab",
            organization="organization",
            preview=preview,
            monitor=monitor,
        )
        pulumi.runtime.set_all_config({"kubernetes:context": "lab"})
        created = program()
        await wait_for_rpcs()
        return await created if inspect.isawaitable(created) else created

    return finish(running())
