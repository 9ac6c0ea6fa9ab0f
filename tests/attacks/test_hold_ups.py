"""Whatever a tenant does to its vCluster, the other teams' updates go on, and the command that the
end of the update names puts it right.
"""

import base64
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.attacks import own_api_server
from tests.attacks.hold_ups import ACTS, LINE, QUEUES, STAYS, is_at_work
from tests.attacks.http import Http
from tests.attacks.own_api_server import answering
from tests.engine.sandbox_commands import until
from tests.faults.case import CONFIG, ML, Case, Ran, client_of
from tests.faults.desired import Followed, converge
from tests.temporary import temporary

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(900)]

SECRET = "/api/v1/namespaces/team-ml/secrets/vc-ml"
TEAMS = ("ml", "research")
VERSIONS = ("v0.16.8", "v0.14.7")


def team(name, level):
    own = {"nodePool": {"kai-fleet/pool": name}, "isolation": {"level": level}}
    return {**ML, "scheduler": {"mode": "virtual", "version": VERSIONS[0]}, **own}


@pytest.fixture(scope="module")
def case(tmp_path_factory) -> Iterator[Case]:
    created = Case.make(tmp_path_factory.mktemp("hold-ups"))
    with temporary(created.sandbox):
        created.sandbox_up()
        teams = {"ml": team("ml", "restricted"), "research": team("research", "baseline")}
        created.write({**CONFIG, "kai-fleet:teams": {**CONFIG["kai-fleet:teams"], **teams}})
        created.up()
        yield created


def http(case, name=None):
    return Http(client_of(case.inside(name) if name else case.host))


def train(config, name):
    return config["kai-fleet:teams"][name]["queues"]["default"]["children"]["train"]["gpu"]


def quota(case, name):
    spec = http(case, name).get(f"{QUEUES}/train")["spec"]
    return spec["resources"]["gpu"]["quota"]


def version(case, name):
    path = "/apis/apps/v1/namespaces/kai-scheduler/deployments/kai-operator"
    (container,) = http(case, name).get(path)["spec"]["template"]["spec"]["containers"]
    return container["image"].rpartition(":")[2]


def ask(case, what="quota"):
    """Have another quota, or another version of KAI, for both teams; what is to be there then."""
    now = (quota if what == "quota" else version)(case, "research")
    values = (5, 6) if what == "quota" else VERSIONS
    (desired,) = [value for value in values if value != now]

    def change(config):
        for name in TEAMS:
            if what == "quota":
                train(config, name)["quota"] = desired
            else:
                config["kai-fleet:teams"][name]["scheduler"]["version"] = desired

    case.edit(change)
    return desired


def held(ran: Ran):
    """What the end of a run says of team ml, and the command; of no other team it says anything."""
    assert ran.code == 1, ran.reported
    assert "Traceback" not in ran.reported
    lines = LINE.findall(ran.reported)
    assert [name for name, _, _ in lines] == ["ml"], ran.reported
    ((_, cause, command),) = lines
    assert ran.last.startswith("team ml: "), ran.reported
    return cause, command


# The first of them, in less time: tests/engine/test_commands.py.
@pytest.mark.parametrize("act", ACTS[1:], ids=lambda act: act.name)
def test_what_a_tenant_does_inside_holds_up_its_own_team(case, act):
    tenant = http(case, "ml")
    act.do(tenant, case)
    until(lambda: is_at_work(act, tenant))
    look = version if act.version else quota
    desired = ask(case, "version" if act.version else "quota")
    ran = case.fleet("up")
    cause, _ = held(ran)
    assert look(case, "research") == desired
    assert act.says in cause
    converge(case, failed=ran)
    assert [look(case, name) for name in TEAMS] == [desired, desired]


def foreign(case):
    document = yaml.safe_load(base64.b64decode(http(case).get(SECRET)["data"]["config"]))
    document["users"][0]["user"] = {"exec": {"command": "sh", "apiVersion": "x"}}
    text = base64.b64encode(yaml.safe_dump(document).encode()).decode()
    http(case).ask("PATCH", SECRET, {"data": {"config": text}})


@pytest.mark.parametrize(
    ("do", "says"),
    [
        pytest.param(
            lambda case: http(case).ask("DELETE", SECRET),
            "somebody deleted Secret vc-ml of namespace team-ml",
            id="no way in",
        ),
        pytest.param(
            foreign,
            "somebody else than its vCluster wrote Secret vc-ml of namespace team-ml",
            id="another way in",
        ),
    ],
)
def test_what_a_tenant_does_to_its_secret_holds_up_its_own_team(case, do, says):
    do(case)
    desired = ask(case)
    observed = case.fleet("preview")
    assert observed.code == 0
    assert "research-queues" in observed.reported
    assert "Secret vc-ml of namespace team-ml" in observed.reported, "a warning"
    ran = case.fleet("up")
    cause, _ = held(ran)
    assert quota(case, "research") == desired
    assert cause == says
    known = case.typed(".venv/bin/fleet team kubeconfig ml --stack faults")
    assert "client-key-data" in known.reported, known
    converge(case, failed=ran)
    assert [quota(case, name) for name in TEAMS] == [desired, desired]


def _found(case, path):
    try:
        return http(case).get(path)
    except ApiException:
        return None


@pytest.mark.parametrize("refresh", [(), ("--refresh",)], ids=["", "refreshed"])
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (own_api_server.hangs, "the API of its vCluster does not answer as Kubernetes does"),
        (own_api_server.fails, "the API of its vCluster does not answer as Kubernetes does"),
        (own_api_server.is_old, "the API of its vCluster does not answer as Kubernetes does"),
    ],
)
def test_what_a_tenants_server_answers_holds_up_its_own_team(case, answer, says, refresh):
    with answering(case, "ml", answer):
        desired = ask(case)
        ran = case.start("up", *refresh).end(600)
        cause, _ = held(ran)
        assert quota(case, "research") == desired
        assert cause == says
        assert case.typed(Followed(case).next(ran)).code == 0
    until(lambda: _answers(case))
    converge(case)
    assert [quota(case, name) for name in TEAMS] == [desired, desired]


def test_the_doctor_concludes_nothing_from_lists_that_were_put_off(case):
    """It read a Deployment of KAI and not its SchedulingShard, and printed the one's deletion."""
    with answering(case, "ml", own_api_server.is_busy):
        told = case.fleet("doctor")
    assert "429" in told.reported, told.reported
    assert " delete " not in told.reported, told.reported
    until(lambda: _answers(case))


def test_a_full_store_is_told_what_keeps_its_data(case):
    """Each command that is printed is run, and none twice: at last its volume is to grow."""
    followed = Followed(case)
    with answering(case, "ml", own_api_server.is_full):
        desired = ask(case)
        for said in ("StorageClass sandbox lets no volume grow", "is full"):
            ran = case.fleet("up")
            cause, _ = held(ran)
            assert cause.startswith("the store of its vCluster is full")
            assert said in cause
            assert case.typed(followed.next(ran)).code == 0
        last = case.fleet("up").last
        assert "claim data-ml-0 of its full store is to grow and has 5Gi still" in last
        assert quota(case, "research") == desired
    until(lambda: _answers(case))
    converge(case)
    assert [quota(case, name) for name in TEAMS] == [desired, desired]


def _answers(case):
    with closing(client_of(case.inside("ml"))) as api:
        try:
            return client.CoreV1Api(api).list_namespace(limit=1, _request_timeout=5)
        except Exception:
            return None


def test_finalizers_hold_up_their_own_team(case):
    """A tenant keeps a queue, and something in KAI's namespace; its team does without KAI now."""
    tenant = http(case, "ml")
    tenant.ask("PATCH", f"{QUEUES}/train", [STAYS])
    stays = {"metadata": {"name": "stays", "finalizers": STAYS["value"]}}
    tenant.post("/api/v1/namespaces/kai-scheduler/configmaps", stays)
    desired = ask(case)
    before = case.file.read_text()

    def without_kai(config):
        config["kai-fleet:teams"]["ml"]["scheduler"] = {"mode": "default"}
        del config["kai-fleet:teams"]["ml"]["queues"]

    case.edit(without_kai)
    ran = case.start("up", "--yes", "ml").end(400)
    cause, _ = held(ran)
    assert cause == "finalizers keep queue/train"
    assert quota(case, "research") == desired
    reported = converge(case, ("up", "--yes", "ml"), failed=ran)
    assert "namespace kai-scheduler does not go: finalizers keep configmaps stays" in "".join(
        reported
    )
    case.file.write_text(before)
    case.up()


def test_every_command_goes_on_beside_a_team_that_refuses_everything(case):
    refuse = next(item for item in ACTS if item.name == "a policy that refuses everything")
    refuse.do(http(case, "ml"), case)
    time.sleep(5)
    desired = ask(case, "version")
    held(case.fleet("up"))
    held(case.fleet("up", "--refresh"))
    assert case.fleet("preview").code == 0
    (other,) = [item for item in VERSIONS if item != desired]
    # A switch updates the whole stack: it tells that team ml is not where its file says.
    switched = case.fleet("team", "switch", "research", other, "--yes")
    assert switched.code == 1, switched.reported
    assert "error: the update is done, but for team ml\n" in switched.reported
    assert version(case, "research") == other
    # What is inside goes with the vCluster, whatever its API says.
    removed = case.fleet("team", "remove", "ml", "--yes")
    assert removed.code == 0, removed.reported
    assert not _found(case, "/api/v1/namespaces/team-ml")
