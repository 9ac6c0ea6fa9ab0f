import * as pulumi from "@pulumi/pulumi";

/** A component that the plugin kai-fleet constructs. */
class Component extends pulumi.ComponentResource {
    static outputs: string[] = [];

    constructor(name: string, args: pulumi.Inputs, opts?: pulumi.ComponentResourceOptions) {
        const outputs = Object.fromEntries(new.target.outputs.map((key) => [key, undefined]));
        super(`kai-fleet:index:${new.target.name}`, name, { ...outputs, ...args }, opts, true);
    }
}
class GpuStack extends Component {}
class HostGuards extends Component {
    static outputs = ["ready"];
    readonly ready!: pulumi.Output<string>;
}
class TeamNamespace extends Component {
    static outputs = ["name"];
    readonly name!: pulumi.Output<string>;
}
class VirtualCluster extends Component {
    static outputs = ["kubeconfig", "probeEnvironment"];
    readonly kubeconfig!: pulumi.Output<string>;
    readonly probeEnvironment!: pulumi.Output<Record<string, string>>;
}
class KaiScheduler extends Component {}
class QueueTree extends Component {}
class Kubernetes extends pulumi.ProviderResource {}

const config = new pulumi.Config();
const context = config.require("context");
const pool = { "kai-fleet/pool": "ml" };
const onHost = { providers: [new Kubernetes("kubernetes", "host", { context })] };

const gpu = new GpuStack("gpu", { provider: "none" }, onHost);
const guards = new HostGuards("guards", {}, onHost);
const space = new TeamNamespace("ml", { gpus: 8, nodePool: pool, guards: guards.ready }, onHost);
const cluster = new VirtualCluster("ml", {
    namespace: space.name,
    version: "v0.36.1",
    nodePool: pool,
    controlPool: pool,
    access: { type: "NodePort", host: config.require("node") },
    context,
}, { ...onHost, dependsOn: gpu });

const { kubeconfig, probeEnvironment } = cluster;
const kai = new KaiScheduler("ml", { version: "v0.16.8", kubeconfig, probeEnvironment });
const queues = { train: { gpu: { quota: 6 } }, serve: { gpu: { quota: 2 } } };
new QueueTree("ml", { gpus: 8, kubeconfig, queues: { default: { children: queues } } }, {
    dependsOn: kai,
});

export { kubeconfig };
