"""The host of the attacks, made once."""

import os
import time

import pytest
from kubernetes.client.exceptions import ApiException

from tests.attacks.attempts import ATTEMPTS
from tests.attacks.host import Host
from tests.attacks.sending import send
from tests.engine.emptied import Emptied


@pytest.fixture(scope="module")
def host(place: Emptied) -> Host:
    """As the module before left it, if that attacked it too: nothing that is tried succeeds."""
    if not isinstance(place.tenant, Host):
        place.empty()
        found = Host.of(str(place.sandbox.kubeconfig))
        found.make()
        _until_they_hold(found)
        place.tenant = found
    return place.tenant


def _until_they_hold(host: Host) -> None:
    """A policy takes a moment until every request is held against it."""
    last = next(a for a in ATTEMPTS if a.name == "all GPUs")
    until = time.monotonic() + 60
    others = ("vision", "tight", "mig", "quiet", "audio", "sim")
    waiting = {team: last.body(team) for team in (*last.teams, *others)}
    while waiting and time.monotonic() < until:
        for team, body in list(waiting.items()):
            try:
                send(host, f"vcluster {team}", team, body)
            except ApiException:
                del waiting[team]
        time.sleep(0.2)
    assert not waiting, os.linesep.join(waiting)
