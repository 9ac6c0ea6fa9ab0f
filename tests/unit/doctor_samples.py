"""A healthy host with one team, as an API server would answer; tests spoil one thing of it."""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kai_fleet.isolation import network_policies, team_quotas, vcluster_rights
from kai_fleet.vcluster.oidc import group_roles
from kai_fleet_cli.doctor.checks.groups import KINDS
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.doctor.examine import examine
from kai_fleet_cli.waiting.finding import Finding, Health

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.guards.host_rules import node_bindings
from kai_fleet.guards.policies import (
    BINDING,
    POLICY,
    as_annotations,
    kinds,
    policy,
    shared_bindings,
)
from kai_fleet.releases import kai
from kai_fleet.settings import load
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet_cli.doctor.sources import host_of

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
LONG_AGO = "2026-11-01T11:00:00Z"
VERSION = "v0.16.8"
GROUP = "407623a2-216d-4c06-b5b8-f8345bf28b5a"
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
SAMPLE_TEAM = DeclaredTeam("ml", gpus=4, isolation=Isolation())
TREE = {"default": None, "train": "default", "serve": "default"}


def meta(name: str, namespace: str | None = None, **more: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    uid = f"uid-{namespace}-{name}"
    return {"name": name, **place, "uid": uid, "creationTimestamp": LONG_AGO, **more}


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


def endpoints(service: str, ready: bool = True) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": service}
    return {
        "metadata": meta(f"{service}-x", "kai-scheduler", labels=labels),
        "endpoints": [{"conditions": {"ready": ready}}] if ready else [],
    }


def sharing(name: str, fraction: str = "0.5", group: str = GROUP) -> dict[str, Any]:
    return pod(
        name,
        node="ml-0",
        labels={"runai-gpu-group": group},
        annotations={"gpu-fraction": fraction},
    )


def reservation(group: str = GROUP, index: str | None = "GPU-1", **status: Any) -> dict[str, Any]:
    return pod(
        "gpu-reservation-ml-0-x7",
        queue=None,
        node="ml-0",
        namespace="kai-resource-reservation",
        labels={"runai-gpu-group": group},
        annotations={"run.ai/reserve_for_gpu_index": index} if index else {},
        status=status,
    )


def release_secret(status: str = "deployed", revision: str = "1") -> dict[str, Any]:
    labels = {"owner": "helm", "name": "kai-scheduler", "status": status, "version": revision}
    return {"metadata": meta(f"sh.helm.release.v1.kai-scheduler.v{revision}", labels=labels)}


@dataclass
class Guards:
    """The objects of the host's guards by kind, to be spoilt."""

    objects: dict[str, list[Any]]

    def named(self, kind: str, name: str) -> Any:
        return next(it for it in self.objects[kind] if it["metadata"]["name"] == name)

    def drop(self, kind: str, name: str) -> None:
        self.objects[kind].remove(self.named(kind, name))


@dataclass
class Lab:
    """The objects of a healthy stack by cluster, to be spoilt before they are looked at."""

    settings: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(SETTINGS))
    host: dict[str, list[Any]] = field(default_factory=lambda: _host())
    ml: dict[str, list[Any]] = field(default_factory=lambda: _inside())
    unreached: str = ""
    certificate_ends: datetime = NOW + timedelta(days=300)
    declared: bool = True
    spoil_guards: Callable[[Guards], Any] = lambda guards: None
    provider_unreached: bool = False

    def named(self, kind: str, name: str, where: str = "ml") -> Any:
        objects = self.host if where == "host" else self.ml
        return next(item for item in objects[kind] if item["metadata"]["name"] == name)

    def drop(self, kind: str, name: str, where: str = "ml") -> None:
        objects = self.host if where == "host" else self.ml
        objects[kind] = [item for item in objects[kind] if item["metadata"]["name"] != name]

    def look(self) -> Snapshot:
        settings = load(self.settings).settings
        assert settings is not None
        fleet = fleet_of(settings)
        every = fleet.every_team
        wanted = every["ml"]
        common: dict[str, Any] = {"now": NOW, "update": "`make up STACK=lab`"}
        granted = {
            name: TeamState(each, update=common["update"])
            for name, each in every.items()
            if each.granted
        }
        own = {**listed(wanted.guards), **_roles(wanted), **self.ml}
        inside = ClusterState("ml", wanted.inside, own, kubectl="kubectl --kubeconfig ml", **common)
        team = TeamState(wanted, None if self.unreached else inside, self.unreached)
        team = replace(
            team,
            update=common["update"],
            certificate_ends=self.certificate_ends,
            provider_unreached=self.provider_unreached,
        )
        guards = listed(_host_guards(wanted.rules))
        self.spoil_guards(Guards(guards))
        host = ClusterState(
            "host", host_of(fleet), {**guards, **self.host}, kubectl="kubectl", **common
        )
        return Snapshot(host, {"ml": team, **granted})

    def ill(self) -> list[Finding]:
        """Everything that is not well."""
        return [finding for finding in examine(self.look()) if finding.health is not Health.OK]


def listed(declared: Iterable[Any]) -> dict[str, list[Any]]:
    """Objects of guards, as the API server gives them back."""
    plurals = {POLICY: "validatingadmissionpolicies", BINDING: "validatingadmissionpolicybindings"}
    found: dict[str, list[Any]] = {kind: [] for kind in plurals.values()}
    for each in copy.deepcopy(list(declared)):
        spec = each.get("spec", {})
        matched = spec.get("matchConstraints" if each["kind"] == POLICY else "matchResources")
        for rules in ("resourceRules", "excludeResourceRules"):
            for rule in (matched or {}).get(rules, []):
                rule["scope"] = "*"
        if matched is not None:
            matched["matchPolicy"] = "Equivalent"
            matched.setdefault("objectSelector", {})
        found[plurals[each["kind"]]].append(each)
    return found


def _roles(wanted: DeclaredTeam) -> dict[str, list[Any]]:
    """Roles of groups, as the API server gives them back."""
    found: dict[str, list[Any]] = {plural: [] for plural in KINDS.values()}
    for each in copy.deepcopy(list(group_roles(wanted))):
        found[KINDS[each["kind"]]].append(each)
    return found


def _host_guards(rules: Any) -> Iterator[Any]:
    yield from (policy(kind) for kind in kinds(beside_kai=True))
    yield from shared_bindings(beside_kai=True).values()
    yield from node_bindings(rules, f"team-{rules.team}").values()


def as_sent(declared: Any) -> Any:
    """As the API server has it: `pod_selector` is podSelector there."""
    if isinstance(declared, dict):
        return {_camel(key): as_sent(value) for key, value in declared.items()}
    return [as_sent(each) for each in declared] if isinstance(declared, list) else declared


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(other.capitalize() for other in others)


def bounds(raw: dict[str, Any]) -> dict[str, str]:
    """The annotations of the namespace of team ml, of these settings."""
    settings = load(raw).settings
    assert settings is not None
    rules = fleet_of(settings).teams["ml"].rules
    assert rules is not None
    return as_annotations(rules.parameters())


def _host() -> dict[str, list[Any]]:
    return {
        "nodes": [node("ml-0")],
        "namespaces": [
            {
                "metadata": meta(
                    "team-ml",
                    labels={
                        "kai-fleet/team": "ml",
                        "pod-security.kubernetes.io/enforce": "baseline",
                        "kai-fleet/isolation": "baseline",
                    },
                    annotations=bounds(SETTINGS),
                )
            }
        ],
        "networkpolicies": [
            {"metadata": meta(name, "team-ml"), "spec": as_sent(spec)}
            for name, spec in network_policies.of_team(SAMPLE_TEAM).items()
        ],
        "pods": [],
        "events": [],
        "deployments": [],
        "runtimeclasses": [{"metadata": meta("nvidia")}],
        "statefulsets": [
            {
                "metadata": meta("ml", "team-ml", labels={"chart": "vcluster-0.36.1"}),
                "spec": {"replicas": 1},
                "status": {"readyReplicas": 1},
            }
        ],
        "resourcequotas": [
            {"metadata": meta(name, "team-ml"), "spec": as_sent(spec)}
            for name, spec in team_quotas.quotas(SAMPLE_TEAM).items()
        ],
        "clusterroles": [
            {"metadata": meta("vc-ml-v-team-ml")},
            {
                "metadata": meta("kai-fleet-vcluster-ml"),
                "rules": as_sent(vcluster_rights.on_host(sees_nodes=True)),
            },
        ],
    }


def _inside() -> dict[str, list[Any]]:
    settings = load(SETTINGS).settings
    assert settings is not None
    wanted = fleet_of(settings).teams["ml"].inside
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pods = [sharing("infer-a"), sharing("infer-b", "0.25"), reservation()]
    return {
        "nodes": [node("ml-0")],
        "namespaces": [{"metadata": meta("default")}],
        "pods": pods,
        "podgroups": [
            {"metadata": meta(f"pg-{p['metadata']['name']}", "default")} for p in pods[:2]
        ],
        "events": [],
        "bound": [],
        "runtimeclasses": [{"metadata": meta("nvidia")}],
        "deployments": [deployment(name) for name in kai(VERSION).deployments],
        "services": [
            {"metadata": meta(name, "kai-scheduler")} for name in ("admission", "queue-controller")
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
            {"metadata": meta(name), "spec": copy.deepcopy(dict(wanted.queue_specs[name]))}
            for name in TREE
        ],
        "releases": [release_secret()],
    }


Spoil = Callable[[Lab], None]
