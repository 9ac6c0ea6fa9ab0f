"""A checkout's `fleet` whose Python finds another checkout's package."""

import pytest

from kai_fleet.cli import checkout_check
from kai_fleet.cli.errors import UserError
from kai_fleet.project import ROOT


def test_code_of_another_checkout_is_refused_with_the_command(tmp_path):
    (tmp_path / "kai_fleet").mkdir()
    with pytest.raises(UserError, match=rf"from {ROOT}: PYTHONPATH .*Run: unset PYTHONPATH"):
        checkout_check.check(str(tmp_path / ".venv/bin/fleet"))


@pytest.mark.parametrize("script", [ROOT / ".venv/bin/fleet", "/usr/bin/fleet", "fleet", "-c"])
def test_its_own_code_and_an_installed_wheel_pass(script):
    checkout_check.check(str(script))
