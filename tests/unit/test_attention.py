"""How soon the sandbox looks at a cluster again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from sandbox import attention
from sandbox.attention import ROUND_SECONDS, SELDOM_SECONDS


@pytest.fixture
def clock(monkeypatch):
    """Time passes in waits only; `clock` is told, and may make something happen then."""
    clock = Clock()
    monkeypatch.setattr(attention.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(attention.threading, "Event", lambda: clock)
    return clock


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.happens: list[tuple[float, object]] = []

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        for moment, what in list(self.happens):
            if moment <= until:
                self.happens.remove((moment, what))
                self.now = moment
                what()
                return
        self.now = until

    def set(self) -> None: ...

    clear = set


def looks(clock: Clock, to_one: attention.Attention) -> Iterator[float]:
    while True:
        to_one.wait()
        yield clock.now


def test_an_idle_cluster_is_looked_at_seldom(clock):
    found = list(itertools.islice(looks(clock, attention.Attention()), 3))
    assert [b - a for a, b in itertools.pairwise(found)] == [SELDOM_SECONDS] * 2


def test_what_happens_is_looked_at_soon_and_for_a_while(clock):
    to_one = attention.Attention()
    clock.happens.append((104.0, lambda: to_one.within(0.5)))
    found = list(
        itertools.takewhile(lambda moment: moment < 104 + 3 * SELDOM_SECONDS, looks(clock, to_one))
    )
    assert found[:4] == [100.0, 104.5, 104.5 + ROUND_SECONDS, 104.5 + 2 * ROUND_SECONDS]
    assert found[-1] - found[-2] == SELDOM_SECONDS


def test_more_that_happens_does_not_put_the_look_off(clock):
    to_one = attention.Attention()
    to_one.wait()
    for moment in (102.0, 102.1, 102.2):
        clock.happens.append((moment, lambda: to_one.within(0.2)))
    to_one.wait()
    assert clock.now == pytest.approx(102.2)
