module kai-fleet/sandbox/pulumi-language-yaml

go 1.24.0

// Numbered apart from the CLI. What the CLI asks of a language host is the same in both.
require github.com/pulumi/pulumi-yaml v1.25.0
