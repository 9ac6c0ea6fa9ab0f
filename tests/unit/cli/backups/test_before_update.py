"""`fleet up` takes a backup of a vCluster that goes to another version, before the engine runs."""

from contextlib import contextmanager

import pytest

from kai_fleet_cli.backups import files, taking
from kai_fleet_cli.commands import updates
from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.state import State
from kai_fleet_stack.settings import Settings
from tests.unit.cli.backups.test_backup import taken
from tests.unit.cli.diff.test_lost_vclusters import state
from tests.unit.cli.teams.team_project import LAB
from tests.unit.cli.test_printed_commands import printed

TEAM = "    ml:\n"


def edited(*vcluster):
    """The lab's file with these keys of ml's vCluster."""
    return LAB.replace(TEAM, f"{TEAM}      vcluster: {{{', '.join(vcluster)}}}\n")


class Lab:
    """A stack whose last update is `known`, its host, and what the engine was asked."""

    def __init__(self, project):
        self.project = project
        self.known = state()
        self.calls = []
        self.refuses = ""

    @contextmanager
    def host(self, stack):
        self.calls.append(f"host of {stack}")
        yield None

    def take(self, host, team):
        if self.refuses:
            raise UserError(self.refuses)
        self.calls.append(f"take {team}")
        return taken()

    def up(self, stack, *, refresh=False, removed=(), agree=None):
        agree(self.known)
        self.calls.append("up")
        return Report()

    def run(self, text, *words):
        (self.project.root / "Pulumi.lab.yaml").write_text(text)
        return self.project.run(*(words or ("up", "--stack", "lab")))

    @property
    def backups(self):
        return sorted((self.project.root / "backups").glob("*"))


@pytest.fixture
def lab(project, monkeypatch):
    lab = Lab(project)
    monkeypatch.setattr(files, "KEY_FILE", project.root / "backup.key")
    monkeypatch.setattr(taking, "host_of", lab.host)
    monkeypatch.setattr(taking, "take", lab.take)
    monkeypatch.setattr(runs, "up", lab.up)
    monkeypatch.setattr(updates, "lost_vcluster_lines", lambda *_: [])
    return lab


@pytest.mark.parametrize(
    ("key", "version"),
    [
        ("version: v0.35.3", "0.35.3"),
        ("kubernetesVersion: v1.35.0", "v1.35.0"),
        ("store: {type: etcd}", "etcd"),
    ],
)
def test_another_version_is_backed_up_before_the_engine_runs(lab, key, version):
    ran = lab.run(edited(key))
    assert ran.code == 0, ran.refusal
    assert lab.calls == ["host of lab", "take ml", "up"]
    (file,) = lab.backups
    assert file.name.startswith(f"lab-ml-before-{version}-2")
    assert f"{file}: 5 keys of team ml at 2" in ran.out.replace("\n", "")
    assert file.stat().st_mode & 0o077 == 0
    assert files.read("ml", file, files.KEY_FILE).store == taken().store


@pytest.mark.parametrize(
    "text",
    [
        LAB,
        LAB.replace("version: v0.14.7", "version: v0.16.8"),
        edited("access: {type: NodePort, host: 127.0.0.1}"),
        LAB.replace("    dev:", "    new:").replace("pool: dev", "pool: new"),
    ],
    ids=["nothing", "KAI", "another access", "a team that never started"],
)
def test_an_update_that_changes_no_version_asks_nobody(lab, text):
    ran = lab.run(text, "up", "--stack", "lab", "--yes", "dev")
    assert ran.code == 0, ran.refusal
    assert lab.calls == ["up"]
    assert lab.backups == []


def test_of_a_teams_own_stack_none_is_taken(lab, monkeypatch):
    """Its account may not run commands in pods; the update goes on as before."""
    monkeypatch.setattr(Settings, "platform_stack", "prod")
    ran = lab.run(edited("version: v0.35.3"))
    assert ran.code == 0, ran.refusal
    assert lab.calls == ["up"]
    assert lab.backups == []


def test_a_vcluster_that_never_started_has_nothing_to_back_up(lab):
    """dev is in the state, and no update has waited for it."""
    old = edited("version: v0.35.3")
    text = LAB.replace("    dev:\n", "    dev:\n      vcluster: {version: v0.35.3}\n")
    assert text != old
    assert lab.run(text).code == 0
    assert lab.calls == ["up"]


def test_without_a_backup_nothing_is_changed_and_the_printed_command_goes_on(lab):
    lab.refuses = "the control plane of team ml is not Ready, so its store cannot be read"
    text = edited("version: v0.35.3")
    ran = lab.run(text)
    assert "up" not in lab.calls
    assert "nothing is changed" in ran.refusal
    assert "control plane of team ml is not Ready" in ran.refusal
    lab.calls.clear()
    again = lab.run(text, *printed(ran.refusal))
    assert again.code == 0, again.refusal
    assert lab.calls == ["up"]


def test_a_key_that_is_none_stops_the_update_too(lab):
    files.KEY_FILE.write_text("no key")
    ran = lab.run(edited("version: v0.35.3"))
    assert "up" not in lab.calls
    assert "backup.key is no key of a backup" in ran.refusal
    assert ran.refusal.endswith("fleet up --refresh --stack lab --no-backup")


def test_a_first_update_backs_up_nothing(lab, monkeypatch):
    monkeypatch.setattr(updates, "print_missing_prerequisites", lambda *_: None)
    lab.known = State()
    assert lab.run(edited("version: v0.35.3")).code == 0
    assert lab.calls == ["up"]
