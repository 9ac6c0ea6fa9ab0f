"""A healthy host with one team, as an API server would answer; tests break one thing of it."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kai_fleet.cluster.store_use import StoreUse
from kai_fleet.releases import kai
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.read import READS
from kai_fleet_cli.doctor.required import Required, required_objects
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_policies.finding import Command, Finding, Level
from kai_fleet_stack.declared import host_of
from kai_fleet_stack.settings.loading import load

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
LONG_AGO = "2026-11-01T11:00:00Z"
VERSION = "v0.16.8"
GROUP = "407623a2-216d-4c06-b5b8-f8345bf28b5a"
IN_ML = "kubectl --kubeconfig ml"
FREE = {"quota": "unlimited"}
SETTINGS: dict[str, Any] = {
    "cluster": {"name": "lab", "context": "lab"},
    "gpu": {"provider": "device-plugin"},
    "teams": {
        "ml": {
            "scheduler": {"mode": "virtual", "version": VERSION},
            "nodePool": {"kai-fleet/pool": "ml"},
            "gpus": 4,
            "queues": {
                "default": {
                    "cpu": FREE,
                    "memory": FREE,
                    "gpu": {"quota": 4},
                    "children": {
                        "train": {"cpu": FREE, "memory": FREE, "gpu": {"quota": 3}},
                        "serve": {"cpu": FREE, "memory": FREE, "gpu": {"quota": 1, "limit": 2}},
                    },
                }
            },
        }
    },
}


def meta(name: str, namespace: str | None = None, **more: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    uid = f"uid-{namespace}-{name}"
    return {"name": name, **place, "uid": uid, "creationTimestamp": LONG_AGO, **more}


DEFAULT_CLASS = {"storageclass.kubernetes.io/is-default-class": "true"}


def node(name: str, gpus: str = "4") -> dict[str, Any]:
    labels = {"kai-fleet/pool": "ml", "nvidia.com/gpu.memory": "81920"}
    return {
        "metadata": meta(name, labels=labels),
        "spec": {},
        "status": {
            "allocatable": {"cpu": "8", "nvidia.com/gpu": gpus},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def deployment(name: str, version: str = VERSION, **more: Any) -> dict[str, Any]:
    return {
        "metadata": meta(name, "kai-scheduler", generation=1),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"spec": {"containers": [{"image": f"r.io/kai/{name}:{version}", **more}]}},
        },
        "status": {"observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": 1},
    }


def space(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": meta(name, **metadata)}


def by_hand(queue: str) -> dict[str, Any]:
    return {"metadata": meta(queue), "spec": {"resources": {}}}


def daemon_set(name: str) -> dict[str, Any]:
    status = {"desiredNumberScheduled": 1, "numberReady": 0}
    return {"metadata": meta(name, "gpu-operator"), "spec": {}, "status": status}


def pod(name: str, queue: str | None = "train", node: str | None = None, **more: Any) -> Any:
    labels = {**({"kai.scheduler/queue": queue} if queue else {}), **more.pop("labels", {})}
    notes = {"pod-group-name": f"pg-{name}", **more.pop("annotations", {})}
    limits = more.pop("limits", {})
    namespace = more.pop("namespace", "default")
    created = more.pop("created", LONG_AGO)
    spec = {
        "schedulerName": "kai-scheduler",
        "containers": [{"name": "main", "image": "ubuntu", "resources": {"limits": limits}}],
        **({"nodeName": node} if node else {}),
        **more.pop("spec", {}),
    }
    status = {"phase": "Running" if node else "Pending", **more.pop("status", {})}
    assert not more
    metadata = meta(name, namespace, labels=labels, annotations=notes)
    return {
        "metadata": metadata | {"creationTimestamp": created},
        "spec": spec,
        "status": status,
    }


def event(about: Any, message: str, reason: str = "FailedScheduling", kind: str = "Pod") -> Any:
    return {
        "metadata": meta(f"{about['metadata']['name']}.1", about["metadata"].get("namespace")),
        "involvedObject": {
            "kind": kind,
            "name": about["metadata"]["name"],
            "namespace": about["metadata"].get("namespace"),
            "uid": about["metadata"].get("uid"),
        },
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-11-01T11:59:00Z",
    }


def webhook(name: str, service: str, resource: str = "pods") -> dict[str, Any]:
    return {
        "metadata": meta(name),
        "webhooks": [
            {
                "name": f"{service}.kai-scheduler.svc",
                "clientConfig": {
                    "service": {"name": service, "namespace": "kai-scheduler"},
                    "caBundle": "Zm9v",
                },
                "failurePolicy": "Fail",
                "rules": [{"resources": [resource]}],
            }
        ],
    }


def endpoints(service: str) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": service}
    return {
        "metadata": meta(f"{service}-x", "kai-scheduler", labels=labels),
        "endpoints": [{"conditions": {"ready": True}}],
    }


def sharing(name: str, fraction: str) -> dict[str, Any]:
    labels = {"runai-gpu-group": GROUP}
    return pod(name, node="ml-0", labels=labels, annotations={"gpu-fraction": fraction})


def reservation() -> dict[str, Any]:
    return pod(
        "gpu-reservation-ml-0-x7",
        queue=None,
        node="ml-0",
        namespace="kai-resource-reservation",
        labels={"runai-gpu-group": GROUP},
        annotations={"run.ai/reserve_for_gpu_index": "GPU-1"},
    )


@dataclass
class Lab:
    """The objects of a healthy stack by cluster, to be changed before they are examined."""

    settings: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(SETTINGS))
    host: dict[str, list[Any]] = field(default_factory=lambda: _host())
    ml: dict[str, list[Any]] = field(default_factory=lambda: _inside())
    gone: set[str] = field(default_factory=set)  # names of required objects that are not there
    unserved: set[str] = field(default_factory=set)  # kinds that the host does not have
    unreached: str = ""
    certificate_ends: datetime = NOW + timedelta(days=300)
    store: StoreUse = field(default_factory=StoreUse)

    def objects(self, where: str) -> dict[str, list[Any]]:
        return self.host if where == "host" else self.ml

    def waits(self, name: str, says: str = "", where: str = "ml", **more: Any) -> None:
        """Add a pod of KAI, its PodGroup, and what an event says of it."""
        if gpus := more.pop("gpus", None):
            more["limits"] = {"nvidia.com/gpu": str(gpus)}
        item = pod(name, **more)
        namespace = item["metadata"]["namespace"]
        objects = self.objects(where)
        objects["pods"].append(item)
        objects.setdefault("podgroups", []).append(space(f"pg-{name}", namespace=namespace))
        objects["events"] += [event(item, says)] if says else []

    def named(self, kind: str, name: str, where: str = "ml") -> Any:
        return next(item for item in self.objects(where)[kind] if item["metadata"]["name"] == name)

    def look(self) -> Snapshot:
        settings = load(self.settings).settings
        assert settings is not None
        host = host_of(settings)
        teams = {team.name: team for team in (*host.teams, *host.grants)}
        required = tuple(required_objects(settings, host, teams))
        update = Command("make up STACK=lab")
        own = _with(self.ml, self._there(required, "ml"))
        inside = Cluster("ml", teams["ml"].inside, own, {}, NOW, update, IN_ML)
        on_host = _with(self.host, self._there(required, "host"))
        on_host |= {kind: [] for kind in self.unserved}
        states = {name: TeamState(team) for name, team in teams.items()}
        found = None if self.unreached else inside
        ends, store = self.certificate_ends, self.store
        states["ml"] = TeamState(teams["ml"], found, self.unreached, ends, store=store)
        outside = Cluster("host", host, on_host, {}, NOW, update, unserved=frozenset(self.unserved))
        return Snapshot(settings, outside, states, required, update)

    def _there(self, required: Iterable[Required], cluster: str) -> dict[str, list[Any]]:
        """The objects that a stack requires, bare; queues and shards a test writes itself."""
        found: dict[str, list[Any]] = {}
        for row in (row for row in required if row.cluster == cluster):
            if row.check not in ("queues", "shards", "runtime-class"):
                exist = [] if row.name in self.gone else [space(row.name, namespace=row.namespace)]
                found.setdefault(row.resource, []).extend(exist)
        return found

    def ill(self) -> list[Finding]:
        """Everything that is not well."""
        return [finding for finding in examine(self.look()) if finding.level is not Level.OK]


def _with(own: dict[str, list[Any]], more: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {kind: [*own.get(kind, ()), *more.get(kind, ())] for kind in READS}


def _host() -> dict[str, list[Any]]:
    labels = {
        "kai-fleet/team": "ml",
        "pod-security.kubernetes.io/enforce": "baseline",
        "kai-fleet/isolation": "baseline",
    }
    return {
        "storageclasses": [space("standard", annotations=DEFAULT_CLASS)],
        "nodes": [node("ml-0")],
        "namespaces": [space("team-ml", labels=labels)],
        "pods": [],
        "events": [],
        "deployments": [],
        "services": [],
        "runtimeclasses": [space("nvidia")],
        "statefulsets": [
            {
                "metadata": meta("ml", "team-ml", labels={"chart": "vcluster-0.36.1"}),
                "spec": {"replicas": 1},
                "status": {"readyReplicas": 1},
            }
        ],
        "clusterroles": [space("vc-ml-v-team-ml")],
        "daemonsets": [{"metadata": meta("kindnet", "kube-system"), "spec": {}, "status": {}}],
    }


def _inside() -> dict[str, list[Any]]:
    settings = load(SETTINGS).settings
    assert settings is not None
    specs = host_of(settings).teams[0].inside.queue_specs
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    release = {"owner": "helm", "name": "kai-scheduler", "status": "deployed", "version": "1"}
    pods = [sharing("infer-a", "0.5"), sharing("infer-b", "0.25"), reservation()]
    return {
        "nodes": [node("ml-0")],
        "namespaces": [space("default")],
        "pods": pods,
        "podgroups": [space(f"pg-infer-{name}", namespace="default") for name in "ab"],
        "events": [],
        "bound": [],
        "runtimeclasses": [space("nvidia")],
        "deployments": [deployment(name) for name in kai(VERSION).deployments],
        "services": [
            space(name, namespace="kai-scheduler") for name in ("admission", "queue-controller")
        ],
        "endpointslices": [endpoints("admission"), endpoints("queue-controller")],
        "validatingwebhookconfigurations": [
            webhook("validating-kai-admission", "admission"),
            webhook("kai-queue-validation-v2", "queue-controller", "queues"),
        ],
        "mutatingwebhookconfigurations": [webhook("mutating-kai-admission", "admission")],
        "configs": [
            {
                "metadata": meta("kai-config"),
                "spec": {"admission": {"gpuSharing": True}},
                "status": ready,
            }
        ],
        "schedulingshards": [{"metadata": meta("default"), "spec": {}, "status": ready}],
        "queues": [
            {"metadata": meta(name), "spec": copy.deepcopy(dict(specs[name]))}
            for name in ("default", "train", "serve")
        ],
        "releases": [space("sh.helm.release.v1.kai-scheduler.v1", labels=release)],
    }


def in_host_mode():
    """KAI and its queues on the host, and a team whose pods it schedules."""
    lab = Lab()
    team = lab.settings["teams"]["ml"]
    lab.settings |= {"kai": {"version": "v0.16.8"}, "queues": team.pop("queues")}
    team |= {"scheduler": {"mode": "host"}, "queue": "train"}
    kinds = ("deployments", "services", "endpointslices", "configs", "schedulingshards", "queues")
    for kind in (*kinds, "validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        lab.host[kind], lab.ml[kind] = lab.ml[kind], []
    for queue in lab.host["queues"]:
        gpu = queue["spec"]["resources"]["gpu"]
        gpu["limit"] = {"serve": 2, "train": 4}.get(queue["metadata"]["name"], -1)
    lab.ml["pods"] = []
    return lab
