"""Two teams on one cluster, each with a Kubernetes and a KAI version of its own."""

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet import GpuStack, HostGuards, KaiScheduler, QueueTree, TeamNamespace, VirtualCluster

config = pulumi.Config()
context, node = config.require("context"), config.require("node")
on_host = pulumi.ResourceOptions(provider=kubernetes.Provider("host", context=context))
reach = {"access": {"type": "NodePort", "host": node}, "context": context}

gpu = GpuStack("gpu", {"provider": "device-plugin"}, on_host)
guards = HostGuards("guards", {}, on_host)
after_gpu = pulumi.ResourceOptions.merge(on_host, pulumi.ResourceOptions(depends_on=[gpu]))
for team, version in {"ml": "v0.16.8", "research": "v0.7.11"}.items():
    pool = {"kai-fleet/pool": team}
    place = TeamNamespace(team, {"gpus": 8, "node_pool": pool, "guards": guards.ready}, on_host)
    own = {"namespace": place.name, "node_pool": pool, "control_pool": pool, **reach}
    vcluster = VirtualCluster(team, own, after_gpu)
    inside = {"kubeconfig": vcluster.kubeconfig, "probe_environment": vcluster.probe_environment}
    kai = KaiScheduler(team, {"version": version, **inside})
    queues = {"default": {"children": {"train": {"gpu": {"quota": 6}}}}}
    tree = {"queues": queues, "gpus": 8, "kubeconfig": vcluster.kubeconfig}
    QueueTree(team, tree, pulumi.ResourceOptions(depends_on=[kai]))
    pulumi.export(f"{team}-kubeconfig", vcluster.kubeconfig)
