"""The wheels in empty environments: plans offline, and `fleet` on a cluster, without a checkout.

Among the engine tests, because it fetches packages and runs the engine.
"""

import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.lifecycle import Sandbox

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
UV = Path(sys.executable).with_name("uv")
LOCKED = ("--all-packages", "--no-dev", "--output-file")
ML_ENGINEER = ("kai_usage", "kubectl_fleet")
COMMAND_LINE = ("kai_usage", "kai_fleet", "kai_fleet_policies", "kai_fleet_stack", "kai_fleet_cli")

STACK = """\
config:
  kai-fleet:cluster: {name: own, context: own}
  kai-fleet:gpu: {provider: device-plugin}
  kai-fleet:vcluster:
    kubernetesVersion: v1.36.3
    access: {type: NodePort, host: 127.0.0.1}
  kai-fleet:teams:
    ml:
      scheduler: {mode: virtual, version: v0.9.3}
      nodePool: {kai-fleet/pool: ml}
      gpus: 4
      queues: {ml: {children: {train: {gpu: 4}}}}
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the folder in which its commands run."""

    bin: Path
    folder: Path
    variables: dict[str, str]

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command as in a shell where nothing is activated."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "KAI_"))}
        return subprocess.run(
            [self.bin / command, *arguments],
            cwd=self.folder,
            env={**inherited, **self.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def printed(self, command: str, *arguments: str) -> str:
        """What a command prints that ends well."""
        done = self.run(command, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def refusal(self, command: str, *arguments: str) -> str:
        """What a command says that ends with exit code 1, without a traceback."""
        done = self.run(command, *arguments)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """All that are published, by distribution."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [UV, "build", "--quiet", "--all-packages", "--wheel", "--out-dir", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {wheel.name.split("-")[0]: wheel for wheel in folder.glob("*.whl")}


def installed(wheels: list[Path], folder: Path) -> Environment:
    """An environment with these wheels and what they need, and an empty folder beside it."""
    venv, project, locked = folder / "venv", folder / "project", folder / "locked.txt"
    project.mkdir()
    install = (UV, "pip", "install", "--quiet")
    for command in (
        [UV, "venv", "--quiet", "--python", sys.executable, venv],
        # The versions that are tested: the sandbox's plugins are of those.
        [
            UV,
            "export",
            "--quiet",
            "--frozen",
            "--no-emit-workspace",
            "--no-hashes",
            *LOCKED,
            locked,
        ],
        [*install, "--python", venv / "bin" / "python", "--constraint", locked, *wheels],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return Environment(venv / "bin", project, {})


@pytest.fixture(scope="module")
def ml_engineer(wheels, tmp_path_factory):
    """With what an ML engineer installs."""
    return installed([wheels[item] for item in ML_ENGINEER], tmp_path_factory.mktemp("ml-engineer"))


@pytest.fixture(scope="module")
def cli(wheels, tmp_path_factory):
    """With the command line."""
    return installed([wheels[item] for item in COMMAND_LINE], tmp_path_factory.mktemp("cli"))


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("kubectl_fleet", ("py.typed",)),
        ("kai_usage", ("py.typed", "messages.yaml", "scheduling.yaml", "waiting.yaml")),
        ("kai_fleet", ("py.typed", "cluster/kind/create.sh")),
        ("kai_fleet_policies", ("py.typed",)),
        ("kai_fleet_stack", ("py.typed", "settings/mistakes.yaml")),
        ("kai_fleet_cli", ("py.typed", "report/page.html.jinja")),
    ],
)
def test_a_wheel_has_one_import_name_and_all_that_it_needs(wheels, name, files):
    names = zipfile.ZipFile(wheels[name]).namelist()
    folders = {item.partition("/")[0] for item in names}
    assert folders == {name, wheels[name].name.rsplit("-", 3)[0] + ".dist-info"}
    assert {f"{name}/{file}" for file in files} <= set(names)
    assert not [item for item in names if "__pycache__" in item or "node_modules" in item]


def test_the_wheels_of_ml_engineers_need_little_and_is_small(wheels, ml_engineer):
    wheel = zipfile.ZipFile(wheels["kubectl_fleet"])
    (metadata,) = (item for item in wheel.namelist() if item.endswith(".dist-info/METADATA"))
    needs = re.findall(r"^Requires-Dist: ([\w-]+)", wheel.read(metadata).decode(), re.M)
    assert sorted(needs) == ["httpx2", "kai-usage", "lightkube", "pyyaml", "rich"]
    files = [item for item in (ml_engineer.bin.parent / "lib").rglob("*") if item.is_file()]
    installed = sum(item.stat().st_size for item in files if "__pycache__" not in item.parts)
    (message,) = re.findall(
        r"Installed it has (\d+) MB", (ROOT / "docs/ml-engineers.md").read_text()
    )
    assert int(message) * 0.8 < installed / 10**6 <= int(message) < 40
    assert not (ml_engineer.bin / "fleet").exists()


def test_the_sandbox_is_said_to_need_a_checkout(cli):
    for arguments in (("sandbox", "down"), ("sandbox", "env"), ("sandbox", "tools")):
        assert "the sandbox needs a checkout" in cli.refusal("fleet", *arguments)
    stack = cli.folder / "Pulumi.mine.yaml"
    stack.write_text(STACK.replace("context: own", "context: kai-fleet-sandbox"))
    try:
        for command in ("up", "preview"):
            message = cli.refusal("fleet", command, "--stack", "mine")
            assert "the sandbox needs a checkout" in message
            assert "git clone" in message and "make up" in message
    finally:
        stack.unlink()


def test_a_folder_with_a_stack_file_alone_is_planned(cli):
    assert "none in" in cli.run("fleet", "plan", "--stack", "prod").stdout
    (cli.folder / "Pulumi.prod.yaml").write_text(STACK)
    assert "fine" in cli.printed("fleet", "plan", "--stack", "prod")
    message = cli.refusal("fleet", "up", "--stack", "prod")
    assert "Pulumi's CLI is not on PATH; install it" in message


@pytest.fixture(scope="module")
def own(cli, sandbox: Sandbox, tmp_path_factory):
    """A project of two files on "a cluster of one's own": none of it knows of the sandbox.

    Pulumi's plugins, which its CLI would download, are on PATH and in Pulumi's folder.
    """
    (cli.folder / "Pulumi.yaml").write_text("name: kai-fleet\nruntime: python\n")
    (cli.folder / "Pulumi.prod.yaml").write_text(STACK)
    home = tmp_path_factory.mktemp("home")
    kubeconfig = home / "config"
    kubeconfig.write_text(sandbox.kubeconfig.read_text().replace("kai-fleet-sandbox", "own"))
    state = home / "state"
    state.mkdir()
    (home / ".pulumi").mkdir()
    plugins = sandbox.directory / "pulumi-home" / "plugins"
    (home / ".pulumi" / "plugins").symlink_to(plugins)
    path = [str(sandbox.directory / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    variables = {
        "PATH": os.pathsep.join(path),
        "HOME": str(home),
        "PULUMI_HOME": str(home / ".pulumi"),
        "KUBECONFIG": str(kubeconfig),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": "own",
        "PULUMI_K8S_ENABLE_PATCH_FORCE": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "KAI_FLEET_CHARTS": str(sandbox.directory / "charts"),  # no registry is reached here
    }
    return Environment(cli.bin, cli.folder, variables)


def test_a_cluster_of_ones_own_is_made_and_left_alone(own):
    assert "ml" in own.printed("fleet", "up", "--stack", "prod")
    assert "The file changes nothing" in own.printed("fleet", "preview", "--stack", "prod")


def test_the_doctor_and_the_teams_plugin_look_at_it(own, ml_engineer):
    own.printed("fleet", "team", "kubeconfig", "ml", "--stack", "prod", "--output", "ml.yaml")
    shows = {"queues": "train", "pods": "8 free", "pending": "no pod waits"}
    # As kubectl finds its plugins.
    path = os.pathsep.join([str(ml_engineer.bin), own.variables["PATH"]])
    shell = replace(own, bin=Path("/usr/bin"), variables={**own.variables, "PATH": path})
    for command, shown in shows.items():
        printed = shell.printed("env", "kubectl", "fleet", command, "--kubeconfig", "ml.yaml")
        assert shown in printed
    assert own.printed("fleet", "doctor", "--stack", "prod")
