// The compiled program of this folder run by the Automation API, for machines without Pulumi's
// language host for Node.js: node inline.js STACK up|preview|destroy [KEY=VALUE…]
const path = require("path");
const { createRequire } = require("module");
const project = createRequire(path.join(process.cwd(), "package.json"));
const { LocalWorkspace } = project("@pulumi/pulumi/automation");
const name = project("./package.json").name;

async function main([stackName, operation, ...settings]) {
    const program = async () => project("./bin/index.js");
    const stack = await LocalWorkspace.createOrSelectStack({ stackName, projectName: name, program });
    for (const setting of settings) {
        const [key, ...value] = setting.split("=");
        await stack.setConfig(`${name}:${key}`, { value: value.join("="), secret: key === "kubeconfig" });
    }
    const result = await stack[operation]({ onOutput: (text) => process.stderr.write(text) });
    const outputs = operation === "destroy" ? {} : await stack.outputs();
    const changes = operation === "preview" ? result.changeSummary : result.summary.resourceChanges;
    process.stdout.write(JSON.stringify({ changes, outputs }));
}

main(process.argv.slice(2)).catch((why) => {
    process.stderr.write(`${why.message ?? why}\n`);
    process.exit(1);
});
