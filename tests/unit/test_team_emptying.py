"""When the platform's update begins beside the emptying of a team's own stack."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fleet import engine, stack_file
from fleet.teams import emptying as this

TEAM = "urn:pulumi:prod-vision::kai-fleet::kai-fleet:index:Team$kai-fleet:index:"
RELEASE = f"{TEAM}VirtualCluster$kubernetes:helm.sh/v3:Release::vision-vcluster"
SPACE = f"{TEAM}VirtualCluster$kubernetes:core/v1:Namespace::vision-vcluster-namespace"
KAI = f"{TEAM}KaiScheduler$kubernetes:helm.sh/v3:Release::vision-kai"
QUOTA = f"{TEAM}VirtualCluster$kubernetes:core/v1:ResourceQuota::vision-vcluster-quota"
STACK: Any = SimpleNamespace(name="prod-vision")
PLATFORM = "config:\n  kai-fleet:platform: {stack: prod}\n  kai-fleet:team: {name: vision}\n"


class Engine:
    """Removes what it is told to, a step when it is told to, and ends when it may."""

    def __init__(self) -> None:
        self.hear: Callable[[Any], None] | None = None
        self.began, self.may_end = threading.Event(), threading.Event()

    def destroy(
        self, _stack: object, _show: object, *, color: bool, hear: Any, leaving: str
    ) -> None:
        assert (color, leaving) == (False, "vision")
        self.hear = hear
        self.began.set()
        assert self.may_end.wait(10)

    def begins(self, urn: str) -> None:
        assert self.began.wait(10) and self.hear is not None
        step = SimpleNamespace(metadata=SimpleNamespace(urn=urn))
        self.hear(SimpleNamespace(resource_pre_event=step))


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    file = tmp_path / "Pulumi.prod-vision.yaml"
    file.write_text(PLATFORM)
    running = Engine()
    monkeypatch.setattr(engine, "destroy", running.destroy)
    monkeypatch.setattr(stack_file, "path_of", lambda _stack: file)
    return running


def nearly(each: this.Emptying) -> bool:
    """Whether what follows may begin; it is asked in a thread, for it waits."""
    asked = threading.Thread(target=each.until_nearly_empty, daemon=True)
    asked.start()
    asked.join(0.2)
    return not asked.is_alive()


@pytest.mark.parametrize("last", [RELEASE, SPACE], ids=["release", "namespace alone"])
def test_the_platform_begins_when_the_vcluster_goes(running: Engine, last: str) -> None:
    with this.emptying([STACK], color=False) as (each,):
        running.begins(KAI)
        running.begins(QUOTA)
        assert not nearly(each)
        running.begins(last)
        assert nearly(each)
        assert not each.work.done()  # it is going still
        running.may_end.set()
        each.until_empty()


def test_a_granted_account_keeps_its_rights_to_the_end(running: Engine, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod-vision.yaml"
    file.write_text(f"{PLATFORM}  kai-fleet:cluster:\n    kubeconfig: vision.kubeconfig\n")
    with this.emptying([STACK], color=False) as (each,):
        running.begins(RELEASE)
        running.begins(SPACE)
        assert not nearly(each)
        running.may_end.set()
        each.until_nearly_empty()
        each.until_empty()


def test_a_failure_before_the_vcluster_goes_is_said_at_once(
    running: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise engine.EngineFailed("the API does not answer")

    monkeypatch.setattr(engine, "destroy", fails)
    with (
        this.emptying([STACK], color=False) as (each,),
        pytest.raises(engine.EngineFailed, match="does not answer"),
    ):
        each.until_nearly_empty()
