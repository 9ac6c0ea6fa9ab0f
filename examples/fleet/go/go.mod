module fleet

go 1.24

require (
	example.com/pulumi-kai-fleet/sdk/go v0.0.0
	github.com/pulumi/pulumi/sdk/v3 v3.190.0
)

// Where `pulumi package add` puts the SDK.
replace example.com/pulumi-kai-fleet/sdk/go => ./sdks/kai-fleet
