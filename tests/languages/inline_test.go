// The program's function run by the Automation API, for machines without Pulumi's language host for
// Go: `go test -c -o inline`, then ./inline STACK up|preview|destroy [KEY=VALUE…]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optdestroy"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optpreview"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optup"
)

type output struct {
	Value  any  `json:"value"`
	Secret bool `json:"secret"`
}

func TestMain(*testing.M) {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name, operation string, settings []string) error {
	ctx, project := context.Background(), "fleet-go"
	stack, err := auto.UpsertStackInlineSource(ctx, name, project, fleet)
	if err != nil {
		return err
	}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		given := auto.ConfigValue{Value: value, Secret: key == "kubeconfig"}
		if err := stack.SetConfig(ctx, project+":"+key, given); err != nil {
			return err
		}
	}
	changes, outputs := any(nil), map[string]output{}
	switch operation {
	case "up":
		result, err := stack.Up(ctx, optup.ProgressStreams(os.Stderr))
		if err != nil {
			return err
		}
		changes = result.Summary.ResourceChanges
		for key, it := range result.Outputs {
			outputs[key] = output{it.Value, it.Secret}
		}
	case "preview":
		result, err := stack.Preview(ctx, optpreview.ProgressStreams(os.Stderr))
		if err != nil {
			return err
		}
		changes = result.ChangeSummary
	case "destroy":
		result, err := stack.Destroy(ctx, optdestroy.ProgressStreams(os.Stderr))
		if err != nil {
			return err
		}
		changes = result.Summary.ResourceChanges
	default:
		return fmt.Errorf("%s is none of up, preview, destroy", operation)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"changes": changes, "outputs": outputs})
}
