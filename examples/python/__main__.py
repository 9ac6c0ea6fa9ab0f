"""Two teams on one cluster, each with a Kubernetes and a KAI version of its own."""

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet import GpuStack, HostGuards, KaiScheduler, QueueTree, TeamNamespace, VirtualCluster

config = pulumi.Config()
context, node = config.require("context"), config.require("node")
on_host = pulumi.ResourceOptions(provider=kubernetes.Provider("host", context=context))

gpu = GpuStack("gpu", {"provider": "device-plugin"}, on_host)
guards = HostGuards("guards", {}, on_host)
after_gpu = pulumi.ResourceOptions.merge(on_host, pulumi.ResourceOptions(depends_on=[gpu]))
for team, version in {"ml": "v0.16.8", "research": "v0.7.11"}.items():
    pool = {"kai-fleet/pool": team}
    namespace = TeamNamespace(team, {"gpus": 8, "node_pool": pool, "guards": guards}, on_host)
    vcluster = VirtualCluster(
        team,
        {
            "namespace": namespace,
            "node_pool": pool,
            "control_pool": pool,
            "access": {"type": "NodePort", "host": node},
            "context": context,
        },
        after_gpu,
    )
    kai = KaiScheduler(team, {"version": version, "vcluster": vcluster})
    QueueTree(
        team,
        {
            "queues": {"default": {"children": {"train": {"gpu": {"quota": 6}}}}},
            "gpus": 8,
            "vcluster": vcluster,
        },
        pulumi.ResourceOptions(depends_on=[kai]),
    )
    pulumi.export(f"{team}-kubeconfig", vcluster.kubeconfig)
