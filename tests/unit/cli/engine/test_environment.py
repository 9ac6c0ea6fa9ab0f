"""Which stacks a sandbox lets in: one platform, and the team stacks on it."""

from pathlib import Path

import pytest

from kai_fleet_cli.engine.environment import OCCUPANT, for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import offline
from kai_fleet_cli.stack_file import reading
from sandbox import lifecycle
from sandbox.lifecycle import Sandbox
from sandbox.tools import toolbox
from sandbox.tools.table import COMMAND_PROVIDER, KUBERNETES_PROVIDER

PLATFORM = """\
config:
  kai-fleet:cluster: {name: lab, context: kai-fleet-sandbox}
  kai-fleet:vcluster: {access: {type: ClusterIP}}
  kai-fleet:teamStacks: {vision: {nodePool: {pool: vision}, gpus: 4}}
"""
TEAM = """\
config:
  kai-fleet:platform: {stack: lab}
  kai-fleet:team: {name: NAME, scheduler: {mode: default}}
"""


@pytest.fixture
def sandbox(tmp_path, monkeypatch) -> Path:
    """A sandbox's folder; the stack files lab, lab-vision, lab-audio and other are beside it."""
    files = {
        "lab": PLATFORM,
        "other": PLATFORM,
        "lab-vision": TEAM.replace("NAME", "vision"),
        "lab-audio": TEAM.replace("NAME", "audio"),
    }
    for name, text in files.items():
        (tmp_path / f"Pulumi.{name}.yaml").write_text(text)
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    running = Sandbox(tmp_path, ())
    monkeypatch.setattr(lifecycle, "up", lambda say: running)
    monkeypatch.setattr(lifecycle, "find", lambda: running)
    return tmp_path


def refusal(stack):
    with pytest.raises(UserError) as refused:
        for_stack(stack)
    return str(refused.value)


def test_team_stacks_go_where_their_platform_is(sandbox):
    for_stack("lab")
    assert for_stack("lab-vision").occupant is None
    assert (sandbox / OCCUPANT).read_text() == "lab"


def test_a_team_stack_that_goes_leaves_the_place_to_its_platform(sandbox):
    for_stack("lab")
    for_stack("lab-vision").release_sandbox()
    assert (sandbox / OCCUPANT).exists()
    for_stack("lab").release_sandbox()
    assert not (sandbox / OCCUPANT).exists()


def test_a_team_stack_without_its_platform_says_what_to_run(sandbox):
    assert refusal("lab-vision").endswith("first: make up STACK=lab")
    for_stack("other")
    assert refusal("lab-vision").endswith("first: make down, then make up STACK=lab")


def test_a_team_stack_alone_and_a_look_at_what_runs_start_no_sandbox(sandbox, monkeypatch):
    monkeypatch.setattr(lifecycle, "find", lambda: None)
    monkeypatch.setattr(lifecycle, "up", lambda say: pytest.fail("started"))
    assert refusal("lab-vision").endswith("first: make up STACK=lab")
    with pytest.raises(UserError, match="the sandbox is not running; start it with: make up"):
        for_stack("lab", validated=False)


def test_another_platform_is_refused(sandbox):
    for_stack("lab")
    assert "the sandbox runs stack lab" in refusal("other")


def test_what_is_not_granted_is_refused_before_anything_starts_but_can_be_removed(sandbox):
    for_stack("lab")
    assert "is not granted by stack lab" in refusal("lab-audio")
    for_stack("lab-audio", validated=False)


def test_a_real_cluster_is_never_touched_by_a_stand_in(sandbox, monkeypatch):
    """Its plugins are the CLI's to find and to get: neither ours nor a stand-in is on PATH."""
    (sandbox / "Pulumi.prod.yaml").write_text(PLATFORM.replace("kai-fleet-sandbox", "prod"))
    asked = []

    def ensure(names, say):
        asked.extend(names)
        return {
            name: toolbox.Tool(name, "3.274.1", sandbox / "cli" / name, "PATH") for name in names
        }

    monkeypatch.setattr(toolbox, "ensure", ensure)
    monkeypatch.setenv("PATH", "/usr/bin")
    assert for_stack("prod").variables == {"PATH": f"{sandbox / 'cli'}:/usr/bin"}
    assert not {KUBERNETES_PROVIDER, COMMAND_PROVIDER} & set(asked)


def charts(sandbox, monkeypatch):
    monkeypatch.setenv("KAI_FLEET_CHARTS", str(sandbox / "charts"))


def state_file(sandbox, monkeypatch):
    (sandbox / "sandbox.json").write_text("{}")


@pytest.mark.parametrize("mark", [charts, state_file])
@pytest.mark.parametrize("elsewhere", ["context: prod", "kind: {}", "kubeconfig: {secure: v1:x}"])
def test_in_a_shell_of_the_sandbox_another_clusters_stack_is_refused_before_it_is_made(
    sandbox, monkeypatch, elsewhere, mark
):
    """After `eval "$(fleet sandbox env)"` its state would go where `make down` deletes it."""
    file = sandbox / "Pulumi.prod.yaml"
    file.write_text(f"config:\n  kai-fleet:cluster: {{name: prod, {elsewhere}}}\n")
    monkeypatch.setenv("PULUMI_HOME", str(sandbox / "pulumi-home"))
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{sandbox / 'state'}")
    monkeypatch.setattr(toolbox, "ensure", lambda *_: pytest.fail("tools were looked for"))
    mark(sandbox, monkeypatch)
    assert "and make down deletes it" in refusal("prod")
    assert offline.plan("prod").ok
    for_stack("lab")


def test_own_folders_of_the_same_names_are_no_sandbox(sandbox, monkeypatch):
    (sandbox / "Pulumi.prod.yaml").write_text(PLATFORM.replace("kai-fleet-sandbox", "prod"))
    monkeypatch.setenv("PULUMI_HOME", str(sandbox / "pulumi-home"))
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{sandbox / 'state'}")
    monkeypatch.delenv("KAI_FLEET_CHARTS", raising=False)
    tool = toolbox.Tool("pulumi", "3.274.1", sandbox / "cli" / "pulumi", "PATH")
    monkeypatch.setattr(toolbox, "ensure", lambda *_: {"pulumi": tool})
    assert for_stack("prod").variables["PATH"].startswith(str(sandbox / "cli"))
