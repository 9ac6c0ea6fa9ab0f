module kai-fleet/sandbox/pulumi

go 1.26.6

require github.com/pulumi/pulumi/pkg/v3 v3.274.1

// A module's own replace lines count only in its own builds, so this one is repeated here.
replace github.com/atotto/clipboard => github.com/tgummerer/clipboard v0.0.0-20241001131231-d02d263e614e
