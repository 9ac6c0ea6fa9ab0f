module fleet

go 1.24

require github.com/pulumi/pulumi/sdk/v3 v3.190.0
