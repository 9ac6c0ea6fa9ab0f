// A compiled program run by Pulumi's Automation API, which needs no language host for Node.js:
// node inline_program.cjs PROJECT STACK up|preview|destroy [KEY=VALUE…]
const path = require("path");
const { createRequire } = require("module");

async function main([workDir, stackName, operation, ...settings]) {
    const project = createRequire(path.join(workDir, "package.json"));
    const { LocalWorkspace } = project("@pulumi/pulumi/automation");
    const { name: projectName } = project("./package.json");
    const program = async () => project("./bin/index.js");
    const stack = await LocalWorkspace.createOrSelectStack(
        { stackName, projectName, program },
        { workDir },
    );
    for (const setting of settings) {
        const [key, value] = setting.split("=");
        await stack.setConfig(key, { value });
    }
    const result = await stack[operation]({ onOutput: (text) => process.stderr.write(text) });
    const changes = operation === "preview" ? result.changeSummary : result.summary.resourceChanges;
    const outputs = operation === "destroy" ? {} : await stack.outputs();
    process.stdout.write(JSON.stringify({ changes, outputs }));
}

main(process.argv.slice(2)).catch((why) => {
    process.stderr.write(`${why.message ?? why}\n`);
    process.exit(1);
});
