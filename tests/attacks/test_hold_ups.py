"""A tenant holds up its own team's update, and no other: the printed command repairs that."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client

from tests.attacks import own_api_server
from tests.attacks.hold_ups import ACTS, TenantsAct
from tests.attacks.http import Http
from tests.faults.case import CONFIG, ML, Case, Ran, client_of
from tests.temporary import temporary

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
TEAMS = {"ml": "restricted", "research": "baseline"}
REPAIR = re.compile(
    r"[.:] (?:Mend it with: )?(\.venv/bin/fleet .+), then run the same command again"
)


def team(name: str) -> dict[str, Any]:
    own = yaml.safe_load(yaml.safe_dump(ML))
    return own | {
        "scheduler": {"mode": "virtual", "version": "v0.16.8"},
        "nodePool": {"kai-fleet/pool": name},
        "gpus": 8,
        "isolation": {"level": TEAMS[name]},
    }


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    made = Case.make(tmp_path_factory.mktemp("hold-ups"))
    with temporary(made.sandbox):
        made.sandbox_up()
        made.write({**CONFIG, "kai-fleet:teams": {name: team(name) for name in TEAMS}})
        made.up()
        yield made


def set_quota(case: Case, gpus: int) -> None:
    def change(config: Any) -> None:
        for name in TEAMS:
            queues = config["kai-fleet:teams"][name]["queues"]
            queues["default"]["children"]["train"]["gpu"]["quota"] = gpus

    case.edit(change)


def quota(case: Case, name: str) -> float:
    api = client.CustomObjectsApi(client_of(case.inside(name)))
    queue: Any = api.get_cluster_custom_object("scheduling.run.ai", "v2", "queues", "train")
    return float(queue["spec"]["resources"]["gpu"]["quota"])


def repair(case: Case, ran: Ran) -> None:
    """Run the command that the update printed, as its reader would."""
    found = REPAIR.search(ran.said)
    assert found is not None, ran.said
    tools = [str(case.tool(name).parent) for name in ("kubectl", "helm", "pulumi")]
    environment = case.variables() | {
        "PATH": os.pathsep.join([*tools, os.environ["PATH"]]),
        "KUBECONFIG": str(case.host),
    }
    command = found[1].replace(".venv/bin/fleet ", f"{sys.executable} -m kai_fleet_cli ")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=case.checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def cases() -> list[Any]:
    return [
        pytest.param(act, id=act.name, marks=[pytest.mark.slow] if act.slow else []) for act in ACTS
    ]


@pytest.mark.parametrize("act", cases())
def test_only_the_team_whose_cluster_refuses_waits(case: Case, act: TenantsAct):
    before = quota(case, "ml")
    act.act(Http(client_of(case.inside("ml"))))
    set_quota(case, int(before) - 1)
    ran = case.fleet("up")
    assert ran.code != 0, ran.said
    assert quota(case, "research") == before - 1, ran.said
    assert quota(case, "ml") == before, ran.said
    assert "the update is done, but for team ml" in ran.said
    assert act.says in ran.said
    repair(case, ran)
    assert case.fleet("up").code == 0
    assert quota(case, "ml") == before - 1, ran.said


@pytest.mark.slow
def test_an_api_that_never_answers_holds_up_its_own_team_alone(case: Case):
    before = quota(case, "research")
    set_quota(case, int(before) - 1)
    with own_api_server.answering(case, "ml", own_api_server.hangs):
        ran = case.fleet("up")
    assert ran.code != 0, ran.said
    assert "but for team ml" in ran.said
    assert quota(case, "research") == before - 1, ran.said
    assert case.fleet("up").code == 0
