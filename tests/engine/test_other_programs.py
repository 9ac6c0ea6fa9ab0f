"""The examples of the pages, compiled in Go and TypeScript with the SDKs of the schema."""

import shutil

import pytest

from kai_fleet.package import pages
from kai_fleet_cli.stack_file.reading import ROOT
from tests.languages import sdks

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1200)]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    return sdks.generator(tmp_path_factory.mktemp("generator"))


GO = """\
package main

import (
	"github.com/kai-fleet/pulumi-kai-fleet/sdk/go/kaifleet"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func pages(ctx *pulumi.Context) {
%s}
"""


def test_go_programs_pass_its_vet(generator, tmp_path):
    project = tmp_path / "go"
    shutil.copytree(EXAMPLES / "fleet" / "go", project)
    sdks.go_sdk(generator, project)
    every = "".join(pages.example_of(name)["Go"] for name in pages.EXAMPLES)
    (project / "pages.go").write_text(GO % every)
    sdks.run(["go", "vet", "."], project, sdks.GO)


def test_the_examples_in_typescript_compile(generator, tmp_path):
    alone = sdks.typescript(EXAMPLES / "team-alone", tmp_path, generator)
    head = 'import * as pulumi from "@pulumi/pulumi";\nimport * as fleet from "kai-fleet";\n'
    every = "".join(pages.example_of(name)["TypeScript"] for name in pages.EXAMPLES)
    (alone / "index.ts").write_text(f"{head}const config = new pulumi.Config();\n{every}")
    sdks.run([alone / "node_modules" / ".bin" / "tsc", "-p", "."], alone)
