module kai-fleet/sandbox/restic

go 1.24.0

require github.com/restic/restic v0.18.1
