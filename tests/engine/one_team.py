"""A stack of one team that several modules look at and break: made once for those of a worker.

Its guard only warns, so what is wrong gets in.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes import client

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.lifecycle import Sandbox
from tests.engine.product import Product, api, copied

TREE = {
    "train": {"gpu": {"quota": 3, "limit": 6}, "memory": "64G"},
    "serve": {"gpu": {"quota": 4, "limit": 4}},
    "lab": {"gpu": 1},
}


@dataclass
class OneTeam:
    """The stack `sandbox` with the team `ml` alone, in a checkout of its own."""

    sandbox: Sandbox
    product: Product
    kubeconfig: Path

    @classmethod
    def make(cls, sandbox: Sandbox, folder: Path, vcluster: str = "v0.36.1") -> OneTeam:
        """`.venv/bin/fleet` in that folder is the checkout's own."""
        copied(folder)
        document = yaml.safe_load((ROOT / "Pulumi.sandbox.yaml").read_text())
        config = document["config"]
        config.pop("kai-fleet:teamStacks")
        ml = config["kai-fleet:teams"]["ml"]
        ml["scheduler"]["version"] = "v0.9.3"  # without shards: one that is left is a fault
        ml["queues"]["default"]["children"] = TREE
        ml["vcluster"] = {"version": vcluster}
        config["kai-fleet:teams"] = {"ml": ml}
        config["kai-fleet:guard"] = {"mode": "audit"}
        (folder / "Pulumi.sandbox.yaml").write_text(yaml.safe_dump(document))
        product = Product.of("sandbox", sandbox, folder)
        created = product.up()
        kubeconfig = folder / "ml.kubeconfig"
        kubeconfig.write_text(created.outputs["kubeconfigs"]["ml"])
        return cls(sandbox, product, kubeconfig)

    @property
    def folder(self) -> Path:
        """The checkout."""
        return self.product.file.parent

    def inside(self) -> client.ApiClient:
        """The team's vCluster."""
        return api(self.kubeconfig.read_text())
