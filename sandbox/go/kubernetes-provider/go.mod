module kai-fleet/sandbox/kubernetes-provider

go 1.26.0

require github.com/pulumi/pulumi-kubernetes/provider/v4 v4.0.0-20260115033456-f47bc2d6f199

// The module names its SDK by a folder of its repository, in this version.
require github.com/pulumi/pulumi-kubernetes/sdk/v4 v4.24.0
