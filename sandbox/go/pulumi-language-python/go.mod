module kai-fleet/sandbox/pulumi-language-python

go 1.24.0

// The last release whose SDK module still holds the Python language host.
require github.com/pulumi/pulumi/sdk/v3 v3.79.0
