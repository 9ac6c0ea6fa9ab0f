"""What a stack file may say: all mistakes at once, and the defaults of all teams."""

import pytest

from kai_fleet.releases.sharing import NOT_ENFORCED
from kai_fleet_stack.settings.loading import load
from tests.unit.stack.stack_arguments import settings_of

pytestmark = pytest.mark.texts("mistakes")

CLUSTER = {"name": "prod", "context": "prod"}
KAI = {"version": "v0.16.8"}
VIRTUAL = {"scheduler": {"mode": "virtual", "version": "v0.16.8"}}
HOST_MODE = {"mode": "host", "version": "v0.16.8"}
NODE_PORT = {"vcluster": {"access": {"type": "NodePort"}}}


def mistakes(**raw):
    """The mistakes by their keys."""
    return {each.path: each for each in load({"cluster": CLUSTER, **raw}).mistakes}


def test_load_reports_all_mistakes_at_once_with_their_paths(texts):
    found = mistakes(
        kai=KAI,
        gpu={"provider": "operater", "version": 1.0},
        queues={"a": {"cpu": {"quota": "12x"}, "childern": {}}, "b": {"gpu": 6, "limit": 8}},
        teams={
            "ml": {"scheduler": {"mode": "virtul"}},
            "dev": {"scheduler": {"mode": "default"}, "gpus": "4"},
            "x": [],
        },
        tems={},
    )
    assert set(found) == {
        "kai-fleet:gpu.provider",
        "kai-fleet:gpu.version",
        "kai-fleet:queues.a.cpu.quota",
        "kai-fleet:queues.a.childern",
        "kai-fleet:queues.b.limit",
        "kai-fleet:teams.ml.scheduler.mode",
        "kai-fleet:teams.dev.gpus",
        "kai-fleet:teams.x",
        "kai-fleet:tems",
    }
    texts(*found.values())


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        ({"cluster": {"name": "x"}}, ["cluster.context"]),
        ({"teams": {"ml": {**VIRTUAL, **NODE_PORT}}}, ["teams.ml.vcluster.access.host"]),
        (
            {"teams": {"ml": {"scheduler": {"mode": "virtual"}, "queue": "a"}}},
            ["teams.ml.scheduler.version", "teams.ml.queue"],
        ),
        (
            {"kai": KAI, "teams": {"nlp": {"scheduler": HOST_MODE, "queues": {"a": {}}}}},
            ["teams.nlp.scheduler.version", "teams.nlp.queues", "teams.nlp.queue"],
        ),
    ],
)
def test_load_refuses_keys_that_do_not_go_together(raw, keys):
    assert list(mistakes(**raw)) == [f"kai-fleet:{key}" for key in keys]


def test_load_a_queue_inside_itself_is_one_mistake(texts):
    loop: dict = {}
    loop["children"] = {"a": loop}
    found = mistakes(queues={"a": loop})
    texts(found["kai-fleet:queues.a.children.a"])


@pytest.mark.parametrize("kubeconfig", [{"token": "TOP-SECRET"}, "TOP-SECRET"])
def test_load_never_shows_a_kubeconfig(kubeconfig):
    loaded = load({"cluster": {"name": "x", "kubeconfig": kubeconfig}})
    assert bool(loaded.mistakes) == isinstance(kubeconfig, dict)
    assert "TOP-SECRET" not in repr(loaded)


def test_vcluster_of_a_team_has_the_stacks_defaults():
    own = {"kubernetesVersion": "v1.34.4", "values": {"a": {"b": 2}}}
    stack = settings_of(
        {
            "cluster": CLUSTER,
            "vcluster": {"version": "v0.34.7", "values": {"a": {"b": 1, "c": 1}}},
            "teams": {"ml": {**VIRTUAL, "vcluster": own}},
        }
    )
    merged = stack.teams["ml"].vcluster
    assert (merged.version, merged.kubernetes_version) == ("v0.34.7", "v1.34.4")
    assert merged.values == {"a": {"b": 2, "c": 1}}


def test_scheduler_of_a_team_has_the_stacks_defaults_unless_of_another_mode():
    of_all = {"version": "v0.16.8", "gpuSharing": False, "values": {"a": {"b": 1, "c": 1}}}
    own = {"gpuSharing": True, "values": {"a": {"b": 2}}}
    teams = {"ml": {"scheduler": own}, "nlp": {}, "dev": {"scheduler": {"mode": "default"}}}
    pools = {"pools": {"a100": 8}, "queues": {"q": {"shard": "a100"}}}
    stack = settings_of({"cluster": CLUSTER, "scheduler": of_all, "teams": {**teams, "a": pools}})
    merged = stack.teams["ml"].scheduler
    assert (merged.mode, merged.version, merged.gpu_sharing) == ("virtual", "v0.16.8", NOT_ENFORCED)
    assert merged.values == {"a": {"b": 2, "c": 1}}
    assert stack.teams["nlp"].scheduler.version == "v0.16.8"
    assert stack.teams["dev"].scheduler.version is None
    assert [*stack.teams["a"].scheduler.shards] == ["a100"]


def test_load_a_mistake_in_what_all_teams_have_is_at_its_key_and_once():
    of_all = {"mode": "host", "version": "v0.16.8"}
    host = {"queue": "a"}
    found = mistakes(kai={"version": "v0.16.8"}, scheduler=of_all, teams={"a": host, "b": host})
    assert [*found] == ["kai-fleet:scheduler.version"]
    found = mistakes(scheduler={"version": 1.0}, teams={"a": {}, "b": {}})
    assert [*found] == ["kai-fleet:scheduler.version"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"scheduler": "virtual"}, "scheduler"),
        ({"nodePool": "ml"}, "nodePool"),
        ({"scheduler": ...}, "scheduler.version"),
        ({"queues": {"a": {"gpu": "6G"}}}, "queues.a.gpu.quota"),
    ],
    ids=["mode only", "name of a pool", "no scheduler", "bytes of GPUs"],
)
def test_load_answers_a_slip_with_what_to_write(change, path, texts):
    keys = {**VIRTUAL, "gpus": 8, **change}
    team = {key: value for key, value in keys.items() if value is not ...}
    ((where, mistake),) = mistakes(teams={"ml": team}).items()
    assert where == f"kai-fleet:teams.ml.{path}"
    texts(mistake)
