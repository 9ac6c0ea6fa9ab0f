import * as pulumi from "@pulumi/pulumi";
import * as fleet from "kai-fleet";

const config = new pulumi.Config();
const gpus = config.getNumber("gpus") ?? 2;

// Its namespace on the host with quotas, network policies and guards, a vCluster, KAI, queues.
const team = new fleet.Team("vision", {
    cluster: { name: "shared", kubeconfig: config.requireSecret("kubeconfig") },
    scheduler: { mode: "virtual", version: "v0.16.8" },
    nodePool: { "kai-fleet/pool": "vision" },
    gpus,
    queues: { vision: { children: { serve: { gpu: { quota: gpus } } } } },
    vcluster: { access: { type: "NodePort", host: config.require("host") } },
});

// Inside of it: half of a GPU. The kubeconfig is an output of the team.
const server = new fleet.VllmServer("qwen", {
    cluster: { name: "vision", kubeconfig: team.kubeconfig },
    model: "Qwen/Qwen2.5-1.5B-Instruct",
    queue: "serve",
    gpu: { fraction: 0.5 },
    readySeconds: 0,
}, { dependsOn: team });

export const namespace = team.namespace;
export const kubeconfig = team.kubeconfig;
export const url = server.url;
