"""The same team by hand: the steps of the program as a script with helm and kubectl.

It is what the program's own time is held against, so it has the same charts, values and waits.
"""

import base64
import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bench.host_objects import queue
from bench.shell import kubectl, run, until
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.kai.values import kai_values
from kai_fleet.kube.objects import KubeObject
from kai_fleet.releases import KAI, vcluster
from kai_fleet.settings.sections.access import Access
from kai_fleet.vcluster.values import vcluster_values
from sandbox.chart_packages import SOURCES
from sandbox.lifecycle import Sandbox

KAI_SPACE = ("-n", "kai-scheduler")
FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
GROUP = "kai.scheduler"
# Operators of v0.9 wait for the kind.
CLUSTER_POLICIES = SOURCES / "gpu-operator" / "crds" / "nvidia.com_clusterpolicies.yaml"
_PATIENCE = 600  # seconds; the program's own waits have as many


@dataclass
class ByHand:
    """A team of that name on the nodes of that pool; `folder` takes its kubeconfig."""

    sandbox: Sandbox
    folder: Path
    charts: Path
    name: str = "byhand"
    pool: str = "vision"

    @property
    def namespace(self) -> str:
        """Where its vCluster is."""
        return f"team-{self.name}"

    def new_team(self, version: str) -> float:
        """From nothing to accepted queues, in seconds."""
        begun = time.monotonic()
        kubectl(self.sandbox, "create", "namespace", self.namespace)
        values = vcluster_values(
            vcluster("v0.36.1"),
            DeclaredTeam(
                self.name,
                mode="virtual",
                node_pool={"kai-fleet/pool": self.pool},
                access=Access(type="NodePort", host="127.0.0.1"),
                kubernetes_version="v1.36.3",
            ),
            self.namespace,
        )
        chart = str(self.charts / "vcluster-0.36.1.tgz")
        here = ("--namespace", self.namespace, "--values", "-")
        run(self.sandbox, "helm", "install", self.name, chart, *here, stdin=json.dumps(values))
        quota = ("quota", "gpus", "--hard=requests.nvidia.com/gpu=2")
        kubectl(self.sandbox, "-n", self.namespace, "create", *quota)
        until(self._kubeconfig_written, _PATIENCE)
        until(lambda: "ok" in self._quiet("get", "--raw", "/readyz"), _PATIENCE)
        self._inside("create", "namespace", "kai-scheduler")
        self._helm("install", version)
        self._wait(version)
        for name, parent in (("default", None), ("test", "default")):
            resources = dict.fromkeys(("cpu", "memory", "gpu"), FREE)
            spec = {"resources": resources, **({"parentQueue": parent} if parent else {})}
            self._inside("create", "-f", "-", stdin=json.dumps(queue(name, spec)))
        return time.monotonic() - begun

    def upgrade(self, version: str) -> float:
        """`helm upgrade --install` and the wait, in seconds."""
        begun = time.monotonic()
        self._helm("upgrade", version, "--install")
        self._wait(version)
        return time.monotonic() - begun

    def replace(self, version: str) -> float:
        """Clean-up, `helm uninstall`, `helm install` and the wait, in seconds."""
        begun = time.monotonic()
        self._inside("delete", f"configs.{GROUP}", "kai-config", "--ignore-not-found")
        self._inside("delete", f"schedulingshards.{GROUP}", "default", "--ignore-not-found")
        until(lambda: "kai-scheduler" not in self._webhooks())
        run(self.sandbox, "helm", "uninstall", "kai-scheduler", "--wait", *KAI_SPACE, **self._at())
        self._inside("apply", "-f", str(CLUSTER_POLICIES))
        self._helm("install", version)
        self._wait(version)
        return time.monotonic() - begun

    def remove(self) -> float:
        """The team, whole, in seconds."""
        begun = time.monotonic()
        run(self.sandbox, "helm", "uninstall", self.name, "-n", self.namespace, "--wait")
        kubectl(self.sandbox, "delete", "namespace", self.namespace)
        return time.monotonic() - begun

    def _helm(self, verb: str, version: str, *more: str) -> None:
        chart = str(self.charts / f"kai-scheduler-{version}.tgz")
        run(
            self.sandbox,
            *("helm", verb, "kai-scheduler", chart, *KAI_SPACE, "--wait", *more),
            *("--values", "-"),
            stdin=json.dumps(kai_values(KAI[version])),
            **self._at(),
        )

    def _wait(self, version: str) -> None:
        until(lambda: set(KAI[version].deployments) <= self._rolled_out(), _PATIENCE)
        for what in KAI[version].ready_conditions:
            until(partial(self._ready, what), _PATIENCE)
        probe = queue("probe", {"resources": {}})
        self._inside("create", "--dry-run=server", "-f", "-", stdin=json.dumps(probe))

    def _rolled_out(self) -> set[str]:
        found = json.loads(self._quiet(*KAI_SPACE, "get", "deployments", "-o", "json") or "{}")
        return {it.name for it in map(KubeObject, found.get("items", [])) if it.rolled_out}

    def _ready(self, what: str) -> bool:
        text = self._quiet("get", what, "-o", "json")
        return bool(text) and KubeObject(json.loads(text)).is_ready

    def _webhooks(self) -> str:
        kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
        return self._quiet("get", kinds, "-o", "yaml")

    def _kubeconfig_written(self) -> bool:
        here = ("-n", self.namespace, "get")
        secrets = kubectl(self.sandbox, *here, "secrets", "-o", "json")["items"]
        found = [it for it in secrets if it["metadata"]["name"] == f"vc-{self.name}"]
        if not found:
            return False
        service = kubectl(self.sandbox, *here, "svc", self.name, "-o", "json")
        port = service["spec"]["ports"][0]["nodePort"]
        config = yaml.safe_load(base64.b64decode(found[0]["data"]["config"]))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        (self.folder / f"{self.name}.kubeconfig").write_text(yaml.safe_dump(config))
        return True

    def _at(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.folder / f"{self.name}.kubeconfig")}

    def _inside(self, *arguments: str, **more: Any) -> Any:
        return kubectl(self.sandbox, *arguments, **more, **self._at())

    def _quiet(self, *arguments: str) -> str:
        """What kubectl prints; nothing where it fails."""
        try:
            return run(self.sandbox, "kubectl", *arguments, **self._at())
        except AssertionError:
            return ""
