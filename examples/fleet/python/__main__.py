"""A GPU cluster for two teams, each with a Kubernetes and a KAI version of its own."""

import pulumi
import pulumi_kai_fleet as fleet

config = pulumi.Config()

platform = fleet.Platform(
    "lab",
    cluster={"name": "lab", "kubeconfig": config.require_secret("kubeconfig")},
    gpu={"provider": "device-plugin"},
    vcluster={"version": "v0.36.1", "access": {"type": "NodePort", "host": config.require("host")}},
    teams={
        "ml": {
            "scheduler": {"mode": "virtual", "version": config.get("mlVersion") or "v0.12.23"},
            "node_pool": {"kai-fleet/pool": "ml"},
            "gpus": 2,
            "queues": {
                "ml": {"children": {"train": {"gpu": {"quota": 1}}, "serve": {"gpu": {"quota": 1}}}}
            },
        },
        "dev": {
            "scheduler": {"mode": "default"},
            "node_pool": {"kai-fleet/pool": "dev"},
            "gpus": 1,
        },
    },
)

pulumi.export("teams", platform.teams)
pulumi.export("kubeconfigs", platform.kubeconfigs)
