"""A checkout's `fleet` whose Python finds another checkout's package."""

import pytest

from kai_fleet.settings.files import project
from kai_fleet.settings.files.project import ROOT
from kai_fleet_cli.engine import environment
from kai_fleet_cli.errors import UserError


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        (str(ROOT), "PYTHONPATH names it. Run: unset PYTHONPATH"),
        ("", "that checkout's. Run: rm -rf .venv && make setup"),
    ],
)
def test_code_of_another_checkout_is_refused_with_the_command(tmp_path, monkeypatch, path, remedy):
    monkeypatch.setenv("PYTHONPATH", path)
    (tmp_path / "components").mkdir()
    with pytest.raises(UserError) as refused:
        environment.require_same(str(tmp_path / ".venv/bin/fleet"))
    assert f"from {ROOT}: " in str(refused.value)
    assert str(refused.value).endswith(remedy)


@pytest.mark.parametrize("script", [ROOT / ".venv/bin/fleet", "/usr/bin/fleet", "fleet", "-c"])
def test_its_own_code_and_an_installed_wheel_pass(script):
    environment.require_same(str(script))


def test_a_foreign_project_above_in_another_encoding_is_none_of_ours(tmp_path, monkeypatch):
    (tmp_path / "Pulumi.yaml").write_bytes("name: caf\xe9".encode("latin-1"))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert project._project() == project.CHECKOUT
