"""The other examples and those of the pages: compiled in Go and TypeScript; in Python registered
with what the schema allows.
"""

from __future__ import annotations

import runpy
import shutil

import pytest

from kai_fleet.cli.plan.recorder import record
from kai_fleet.cli.stack_file.reading import ROOT
from kai_fleet.package import page_examples
from kai_fleet.provider.version import version
from tests.languages import sdks
from tests.languages.checked import mistakes

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1200)]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def generate(tmp_path_factory):
    """Writes the SDK of a language into a folder."""
    generator = sdks.generator(tmp_path_factory.mktemp("generator"))
    return lambda language, folder: sdks.run([generator, sdks.SCHEMA, language, folder], ROOT)


@pytest.fixture(scope="module")
def python_sdk(generate, tmp_path_factory):
    """On the path, installed as pip leaves it."""
    folder = tmp_path_factory.mktemp("sdk")
    generate("python", folder)
    installed = folder / f"pulumi_kai_fleet-{version()}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: pulumi_kai_fleet\nVersion: {version()}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield


@pytest.mark.parametrize(
    ("folder", "kind"), [("fleet/python", "Platform"), ("queues-only", "QueueTree")]
)
def test_programs_in_python_register_what_the_schema_allows(python_sdk, folder, kind):
    def program() -> None:
        runpy.run_path(str(EXAMPLES / folder / "__main__.py"), run_name="__main__")

    (made,) = record("lab", {"kubeconfig": "k", "host": "h", "train": 5}, program=program)
    assert made.type == f"kai-fleet:index:{kind}"
    assert mistakes(kind, {key: it for key, it in made.inputs.items() if it}) == []


GO = """\
package main

import (
	"example.com/pulumi-kai-fleet/sdk/go/kaifleet"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func pages(ctx *pulumi.Context) {
%s}
"""


def test_go_programs_pass_its_vet(generate, tmp_path):
    project = tmp_path / "go"
    shutil.copytree(EXAMPLES / "fleet" / "go", project)
    generate("go", project / "sdks" / "kai-fleet")
    every = "".join(page_examples.of(name)["Go"] for name in page_examples.GIVEN)
    (project / "pages.go").write_text(GO % every)
    sdks.run(["go", "vet", "."], project, {"GOFLAGS": "-mod=mod"}, timeout=900)


def test_the_examples_in_typescript_compile(tmp_path):
    alone = sdks.typescript(EXAMPLES / "team-alone", tmp_path)
    head = 'import * as pulumi from "@pulumi/pulumi";\nimport * as fleet from "kai-fleet";\n'
    every = "".join(page_examples.of(name)["TypeScript"] for name in page_examples.GIVEN)
    (alone / "index.ts").write_text(f"{head}const config = new pulumi.Config();\n{every}")
    sdks.run([alone / "node_modules" / ".bin" / "tsc", "-p", "."], alone)
