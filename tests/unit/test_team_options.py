"""What the team commands do with their common flags."""

from __future__ import annotations

import pytest

from fleet import loaded_plugins
from fleet.screen import Wish
from fleet.teams import options


@pytest.mark.parametrize(
    ("yes", "no_up", "loads"),
    [(True, False, True), (False, False, False), (False, True, False), (True, True, False)],
)
def test_only_an_update_without_a_question_loads_its_plugins_at_once(
    monkeypatch: pytest.MonkeyPatch, yes: bool, no_up: bool, loads: bool
) -> None:
    begun: list[bool] = []
    monkeypatch.setattr(loaded_plugins, "load", lambda: begun.append(True))

    assert options.wished(yes, no_up) == Wish(yes, no_up)
    assert bool(begun) == loads
