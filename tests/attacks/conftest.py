"""The host of the attacks, made once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
from kubernetes.client.exceptions import ApiException

from sandbox import lifecycle
from tests.attacks.attempts import ATTEMPTS
from tests.attacks.host import Host
from tests.attacks.sending import sent


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAI_FLEET_SANDBOX", str(tmp_path_factory.mktemp("attacks") / "sandbox"))
        try:
            found = Host.of(str(lifecycle.up(print).kubeconfig))
            found.make()
            _until_they_hold(found)
            yield found
        finally:
            lifecycle.down(print)


def _until_they_hold(host: Host) -> None:
    """A policy takes a moment until every request is held against it."""
    last = next(a for a in ATTEMPTS if a.name == "all GPUs")
    until = time.monotonic() + 60
    others = ("vision", "tight", "mig", "audio", "sim")
    waiting = {team: last.body(team) for team in (*last.teams, *others)}
    while waiting and time.monotonic() < until:
        for team, body in list(waiting.items()):
            try:
                sent(host, f"vcluster {team}", team, body)
            except ApiException:
                del waiting[team]
        time.sleep(0.2)
    assert not waiting, os.linesep.join(waiting)
