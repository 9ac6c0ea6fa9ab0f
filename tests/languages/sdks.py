"""SDKs of the package's schema, and programs that use them, in folders outside of the checkout."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from kai_fleet.provider import version
from kai_fleet_cli.stack_file.reading import ROOT

HERE = Path(__file__).parent
SCHEMA = ROOT / "components" / "kai_fleet" / "package" / "schema.json"
# As the sandbox's CLI is built, so that what is compiled already is not compiled again.
GO_SDK = "github.com/kai-fleet/pulumi-kai-fleet/sdk/go"
GO = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=mod -trimpath -buildvcs=false"}


def run(
    command: list[str | Path], where: Path, env: dict[str, str] | None = None, timeout: float = 900
) -> str:
    """What a command prints; its errors where it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=where,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def generator(folder: Path) -> Path:
    """Pulumi's own generators, built from the module that the sandbox's CLI is built from."""
    source = folder / "codegen"
    shutil.copytree(HERE / "codegen", source)
    run(["go", "build", "-o", "codegen", "."], source, GO)
    return source / "codegen"


def sdk(generator: Path, language: str, project: Path) -> Path:
    """The SDK of a language, where `pulumi package add` puts it in a project."""
    folder = _folder(project)
    run([generator, SCHEMA, language, folder], project)
    return folder


def _folder(project: Path) -> Path:
    """Where `pulumi package add` writes: by the schema's namespace and name."""
    return project / "sdks" / "kai-fleet-kai-fleet"


def typescript(example: Path, folder: Path, generator: Path) -> Path:
    """A program in TypeScript with its SDK, compiled; as `pulumi package add` leaves it."""
    project = Path(shutil.copytree(example, folder / example.parent.name / example.name))
    own = sdk(generator, "nodejs", project)
    run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], project)
    (project / "node_modules" / "kai-fleet").symlink_to(own)
    compiler = project / "node_modules" / ".bin" / "tsc"
    run([compiler], own)
    shutil.copy(own / "package.json", own / "bin")  # as the SDK's own script after its installation
    run([compiler, "-p", "."], project)
    shutil.copy(HERE / "inline.js", project / "bin" / "inline.cjs")
    return project


def go(example: Path, folder: Path, generator: Path) -> Path:
    """A program in Go with its SDK, compiled with what runs its function inline."""
    project = Path(shutil.copytree(example, folder / example.parent.name / example.name))
    go_sdk(generator, project)
    shutil.copy(HERE / "inline_test.go", project)
    run(["go", "test", "-c", "-o", "inline", "."], project, GO)
    return project


def go_sdk(generator: Path, project: Path) -> None:
    """The SDK, and the module that finds it in its folder."""
    own = sdk(generator, "go", project).relative_to(project)
    # Pulumi's own SDK, of the generator's release.
    release = re.search(r"/pkg/v3 (v\S+)", (HERE / "codegen" / "go.mod").read_text())[1]
    pulumi = f"-require=github.com/pulumi/pulumi/sdk/v3@{release}"
    run(["go", "mod", "edit", "-replace", f"{GO_SDK}=./{own}", pulumi], project, GO)
    run(["go", "mod", "tidy"], project, GO)


def python(example: Path, folder: Path, generator: Path) -> Path:
    """A program in Python with its SDK, in the environment that its `Pulumi.yaml` names."""
    project = Path(shutil.copytree(example, folder / example.parent.name / example.name))
    own = sdk(generator, "python", project)
    venv = environment(project)
    uv = Path(sys.executable).with_name("uv")
    run([uv, "venv", "--quiet", "--seed", "--python", sys.executable, venv], project)
    inside = [uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python"]
    run([*inside, "-r", "requirements.txt", own], project)
    return project


def environment(project: Path) -> Path:
    """The environment that the `Pulumi.yaml` of a program in Python names."""
    read = yaml.safe_load((project / "Pulumi.yaml").read_text())
    return project / str(read["runtime"]["options"]["virtualenv"])


def in_yaml(example: Path, folder: Path) -> Path:
    """A program in YAML with the version of the package, as `pulumi package add` writes it."""
    project = Path(shutil.copytree(example, folder / example.parent.name / example.name))
    packages = _folder(project) / f"kai-fleet-{version()}.yaml"
    packages.parent.mkdir(parents=True)
    packages.write_text(
        yaml.safe_dump({"packageDeclarationVersion": 1, "name": "kai-fleet", "version": version()})
    )
    return project
