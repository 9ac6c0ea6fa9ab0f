module kai-fleet/tests/languages/codegen

go 1.24.0

require (
	github.com/pulumi/pulumi/pkg/v3 v3.190.0
	github.com/pulumi/pulumi/sdk/v3 v3.190.0
)

// A module's own replace lines count only in its own builds, so they are repeated here.
replace (
	github.com/atotto/clipboard => github.com/tgummerer/clipboard v0.0.0-20241001131231-d02d263e614e
	github.com/sergi/go-diff => github.com/sergi/go-diff v1.1.0
)
