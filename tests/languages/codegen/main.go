// Writes the SDK of a schema for one language, as `pulumi package add` does by its language host:
// codegen SCHEMA LANGUAGE FOLDER. For machines that have no such host.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	golang "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(from, language, folder string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(content, &spec); err != nil {
		return err
	}
	pkg, diagnostics, err := schema.BindSpec(spec, schema.NewNullLoader(), schema.ValidationOptions{})
	if err != nil {
		return err
	}
	if len(diagnostics) > 0 {
		return diagnostics
	}
	pkg.SupportPack = true
	files, err := generate(pkg, language)
	if err != nil {
		return err
	}
	for name, content := range files {
		if language == "nodejs" && filepath.Dir(name) == "types" {
			content = upwards(content)
		}
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// upwards puts right what this generator writes when Go 1.26 builds it, whose filepath.Rel spells
// the parent folder `..` where it was `../.` before.
func upwards(content []byte) []byte {
	for _, name := range []string{"types/", "utilities"} {
		content = bytes.ReplaceAll(content, []byte(`"./`+name), []byte(`"../`+name))
	}
	return content
}

func generate(pkg *schema.Package, language string) (map[string][]byte, error) {
	switch language {
	case "nodejs":
		return nodejs.GeneratePackage("kai-fleet", pkg, nil, nil, true, nil)
	case "go":
		return golang.GeneratePackage("kai-fleet", pkg, nil)
	case "python":
		return python.GeneratePackage("kai-fleet", pkg, nil, nil)
	}
	return nil, fmt.Errorf("no generator for %s", language)
}
