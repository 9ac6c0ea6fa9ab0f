"""How soon the sandbox looks again."""

from __future__ import annotations

from sandbox import pace


def test_a_cluster_that_changes_is_looked_at_sooner_for_a_while(monkeypatch):
    now = 100.0
    monkeypatch.setattr(pace.time, "monotonic", lambda: now)
    looks = pace.Pace()
    looks.after(["7"])
    busy = looks.seconds
    assert busy < pace.ROUND_SECONDS
    now += 2
    looks.after(["7"])
    assert looks.seconds == busy
    now += 2
    looks.after(["7"])
    assert looks.seconds == pace.ROUND_SECONDS
    looks.after(["8"])
    assert looks.seconds == busy
