import json
import secrets
import stat
from pathlib import Path

import platformdirs
import pytest

from kai_fleet_cli.engine import environment


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name in ("ACCESS_TOKEN", "BACKEND_URL", "CONFIG_PASSPHRASE", "CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(f"PULUMI_{name}", raising=False)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: tmp_path / name)
    return tmp_path


def test_without_a_login_the_state_is_on_this_machine_for_this_user_only(home, capsys):
    found = environment.state_variables()
    said = " ".join(capsys.readouterr().err.split())
    state = Path(found["PULUMI_BACKEND_URL"].removeprefix("file://"))
    passphrase = Path(found["PULUMI_CONFIG_PASSPHRASE_FILE"])
    assert state.is_dir()
    assert stat.S_IMODE(passphrase.stat().st_mode) == 0o600
    assert len(passphrase.read_text()) > 30
    assert "no Pulumi login here" in said
    assert passphrase.read_text() not in said


def test_the_passphrase_stays_the_same():
    first, second = (environment.state_variables() for _ in range(2))
    assert first == second
    file = Path(first["PULUMI_CONFIG_PASSPHRASE_FILE"])
    text = file.read_text()
    environment.state_variables()
    assert file.read_text() == text


def test_a_passphrase_is_there_as_a_whole_or_not_at_all(home, monkeypatch):
    def cut_off(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(secrets, "token_urlsafe", cut_off)
    with pytest.raises(KeyboardInterrupt):
        environment.state_variables()
    assert not (home / "kai-fleet/kind/passphrase").exists()


def test_ones_own_passphrase_is_used(monkeypatch):
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "")
    assert set(environment.state_variables()) == {"PULUMI_BACKEND_URL"}


@pytest.mark.parametrize("name", ["PULUMI_ACCESS_TOKEN", "PULUMI_BACKEND_URL"])
def test_a_login_by_environment_is_left_alone(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    assert environment.state_variables() == {}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (json.dumps({"current": "https://api.pulumi.com"}), True),
        (json.dumps({"current": ""}), False),
        ("not json", False),
        ("[]", False),
    ],
)
def test_a_login_by_command_is_left_alone(home, text, kept):
    (home / "pulumi").mkdir()
    (home / "pulumi" / "credentials.json").write_text(text)
    assert (environment.state_variables() == {}) is kept
