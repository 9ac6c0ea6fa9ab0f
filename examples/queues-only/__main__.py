"""The queues of a cluster that has KAI already, as one resource."""

import pulumi
import pulumi_kai_fleet as fleet

config = pulumi.Config()

tree = fleet.QueueTree(
    "research",
    cluster={"name": "shared", "kubeconfig": config.require_secret("kubeconfig")},
    queues={
        "research": {
            "gpu": {"limit": 8},
            "children": {
                "train": {"gpu": {"quota": config.get_int("train") or 5, "weight": 2}},
                "notebooks": {"gpu": {"quota": 1}, "memory": {"limit": "256Gi"}},
            },
        },
    },
)

pulumi.export("queues", tree.queues)
