import * as pulumi from "@pulumi/pulumi";
import * as fleet from "kai-fleet";

const config = new pulumi.Config();

const platform = new fleet.Platform("lab", {
    cluster: { name: "lab", kubeconfig: config.requireSecret("kubeconfig") },
    gpu: { provider: "device-plugin" },
    vcluster: { version: "v0.36.1", access: { type: "NodePort", host: config.require("host") } },
    teams: {
        ml: {
            scheduler: { mode: "virtual", version: config.get("mlVersion") ?? "v0.12.23" },
            nodePool: { "kai-fleet/pool": "ml" },
            gpus: 2,
            queues: {
                ml: { children: { train: { gpu: { quota: 1 } }, serve: { gpu: { quota: 1 } } } },
            },
        },
        dev: {
            scheduler: { mode: "default" },
            nodePool: { "kai-fleet/pool": "dev" },
            gpus: 1,
        },
    },
});

export const teams = platform.teams;
export const kubeconfigs = platform.kubeconfigs;
