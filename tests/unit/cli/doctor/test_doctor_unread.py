"""What was not read is not absent: no finding and no command rests on a list that failed."""

import time
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from kai_fleet.cluster.kube.api import Api
from kai_fleet_cli.doctor.checks import examine, judgements
from kai_fleet_cli.doctor.read import READS, Source, read_clusters
from kai_fleet_cli.doctor.snapshot import Cluster, UnreadError
from kai_fleet_policies.finding import Level, commands_of
from tests.engine.doctor_repairs import LOOK, shape
from tests.unit.cli.doctor.doctor_cases import CASES
from tests.unit.cli.doctor.doctor_samples import Lab, in_host_mode, meta
from tests.unit.cli.doctor.doctor_spoils import waiting
from tests.unit.cli.doctor.test_doctor_reader import seen, vcluster
from tests.unit.components.cluster import test_killed_for_memory as memory
from tests.unit.components.cluster import test_scheduler_reasons as scheduler
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.cluster.canned_api import kubeconfig, serving

BUSY = "429 Too Many Requests"
HOST_MODE = "in mode host"


def killed(lab):
    """A part of KAI runs again, another and the control plane do not."""
    for part, state in (("binder", memory.AGAIN), ("pod-grouper", {"waiting": memory.BACK_OFF})):
        lab.ml["pods"].append(memory.killed(f"{part}-1-x", "kai-scheduler", part, state))
    lab.named("deployments", "pod-grouper")["status"] = {}
    lab.host["pods"].append(memory.killed("ml-0", "team-ml", "vcluster", {}))
    lab.named("statefulsets", "ml", "host")["status"]["readyReplicas"] = 0


def unplaced(lab, message, claim):
    lab.ml["nodes"] = lab.host["nodes"]
    lab.ml["pods"] = [scheduler.waiting(message)]
    lab.ml["podgroups"] = [{"metadata": meta("pg-w", "default")}]
    lab.ml["persistentvolumeclaims"] = [claim]
    lab.ml["persistentvolumes"] = [scheduler.VOLUME]


def cordoned(lab):
    lab.host["nodes"] = [scheduler.cordoned("ml-0"), scheduler.cordoned("ml-1")]
    unplaced(lab, scheduler.MESSAGES[0], {"metadata": meta("data", "default")})


def volume_gone(lab):
    unplaced(lab, scheduler.GONE[1], scheduler.CLAIM)


def webhook_of_others(lab):
    lab.host["validatingwebhookconfigurations"] = [memory.of_others()]
    lab.host["services"].append({"metadata": meta("policy-svc", "corp-policy")})


MORE = {each.__name__: each for each in (killed, cordoned, volume_gone, webhook_of_others)}


def spoilt(case):
    """The snapshot of a case."""
    lab = in_host_mode() if case == HOST_MODE else Lab()
    if case == HOST_MODE:
        waiting(queue="nosuch")(lab)
    elif case in MORE:
        MORE[case](lab)
    elif case:
        CASES[case][0](lab)
    return lab.look()


def without(snapshot, *kinds, host=False, inside=False, why=BUSY):
    """The snapshot where these lists of the host, or of the vCluster, failed."""
    failed = dict.fromkeys(kinds, why)

    def blind(cluster):
        left = {kind: items for kind, items in cluster.objects.items() if kind not in failed}
        return replace(cluster, objects=left, unreadable=failed)

    on_host = blind(snapshot.host) if host else snapshot.host
    state = snapshot.teams["ml"]
    if inside and state.inside is not None:
        state = replace(state, inside=blind(state.inside))
    return replace(snapshot, host=on_host, teams={**snapshot.teams, "ml": state})


def judgement(snapshot):
    """Faults by what they are about, without those that only say what was not read; and the checks
    that are well, by cluster.
    """
    found, well, ill = defaultdict(list), set(), set()
    for at, faults, decided in judgements(snapshot):
        for each in faults if at[0] != "readable" else ():
            found[at, each.level, each.path, each.kind, each.name].append(each)
        (ill if faults or not decided else well).add(at)
    return found, well - ill


def require_no_more(look, known, sound, what):
    found, well = judgement(look)
    assert well <= sound, what
    # Whether a pod's wait is the platform's may rest on a list.
    inside = {(at, Level.INFO, *of): each for (at, _, *of), each in known.items() if of[0] == "ml"}
    known = inside | known
    for about, fault in ((about, each) for about, faults in found.items() for each in faults):
        assert about in known, f"{what}: {fault}"
        if (fault.cause, fault.fix) not in [(each.cause, each.fix) for each in known[about]]:
            assert "not known: " in fault.cause, f"{what}: {fault}"
            assert all(shape(command) in LOOK for command in commands_of(fault.fix)), fault


@pytest.mark.parametrize("case", ["", HOST_MODE, *MORE, *CASES])
def test_a_list_that_failed_adds_no_finding_no_command_and_nothing_that_is_well(case, monkeypatch):
    read, asked = spoilt(case), set()
    require = Cluster.require

    def noted(cluster, kind, namespace=None):
        asked.add((kind, "host" if cluster.name == "host" else "inside"))
        require(cluster, kind, namespace)

    with monkeypatch.context() as patched:
        patched.setattr(Cluster, "require", noted)
        known, sound = judgement(read)
    sound |= {("readable", "host"), ("readable", "ml")}
    assert len(asked) > 15
    for kind, where in sorted(asked):
        look = without(read, kind, **{where: True})
        require_no_more(look, known, sound, f"{kind} of {where}")
    require_no_more(without(read, *READS, host=True, inside=True), known, sound, "all")


@pytest.mark.parametrize(
    ("kind", "where"),
    [("nodes", "host"), ("persistentvolumes", "inside"), ("persistentvolumeclaims", "inside")],
)
def test_what_a_scheduler_says_stands_where_nodes_and_volumes_were_not_read(kind, where):
    look = without(spoilt("volume_gone"), kind, **{where: True}, why="403 Forbidden")
    found = next(each for each in examine(look) if (each.check, each.path) == ("pending", "ml"))
    assert found.level is Level.INFO
    assert found.cause.startswith("no node has room for it: ")
    assert f"not known: this user may not list {kind} there" in found.cause


def test_a_pod_without_volumes_asks_for_no_list_of_them():
    lab = Lab()
    waiting()(lab)
    known, _ = judgement(lab.look())
    kinds = ("persistentvolumes", "persistentvolumeclaims")
    found, _ = judgement(without(lab.look(), *kinds, inside=True))
    assert found.keys() == known.keys()


def test_a_scheduler_is_not_deleted_for_a_shard_that_nobody_read():
    look = without(Lab().look(), "schedulingshards", "queues", inside=True)
    ill = [each for each in examine(look) if each.level is not Level.OK]
    assert {each.check for each in ill} == {"readable"}
    assert not any("delete" in each.fix for each in ill)


def test_what_is_not_asked_for_cannot_be_asked():
    """A check that a preview asks and that needs a list which a preview does not read."""
    cluster = Lab().look().host
    few = replace(cluster, objects={"nodes": []})
    for ask in (few.all, few.serves, lambda kind: few.find(kind, "a")):
        with pytest.raises(UnreadError, match="does not list pods there"):
            ask("pods")


def test_lists_of_one_namespace_say_nothing_of_others():
    cluster = replace(Lab().look().host, partial={"namespaces": "team-ml", "pods": "team-ml"})
    assert [*cluster.within("pods", "team-ml")] == []
    assert cluster.find("namespaces", "team-ml") is not None
    for ask in (
        lambda: cluster.all("pods"),
        lambda: cluster.within("pods", "kai-scheduler"),
        lambda: cluster.find("namespaces", "team-old"),
    ):
        with pytest.raises(UnreadError, match="this user may not list"):
            list(ask() or ())


@pytest.mark.parametrize(
    "answer",
    [
        (429, {}),
        (403, {}),
        (500, {}),
        (503, {}),
        (200, {"items": [], "metadata": {"continue": "next"}}),
    ],
)
def test_a_list_that_the_server_does_not_give_whole_is_not_read(answer):
    with serving() as (api, url):
        api.answers |= {READS["namespaces"]: (200, {"items": []}), READS["nodes"]: answer}
        api.retry_after = "3600"
        look = seen(url)
    assert list(look.host.unreadable) == ["nodes"]
    found = [each for each in examine(look) if each.kind == "read access to"]
    (said,) = (each for each in found if "nodes" in each.name)
    assert ("may" in said.fix or "give this user" in said.fix) == (answer[0] == 403)


@pytest.mark.parametrize("kinds", [("services",), ()])
def test_a_vcluster_whose_way_in_could_not_be_read_is_not_broken(kinds):
    with serving() as (api, url), vcluster_secrets.serving() as (_, inside):
        api.answers |= vcluster(int(inside.rpartition(":")[2]), vcluster_secrets.data())
        secret = "/api/v1/namespaces/team-ml/secrets/vc-ml"
        api.answers[READS[kinds[0]].format("") if kinds else secret] = (403, {})
        sets = {"items": [{"metadata": {"name": "ml", "namespace": "team-ml"}}]}
        sets["items"][0] |= {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
        api.answers[READS["statefulsets"].format("")] = (200, sets)
        look = seen(url)
    (found,) = [each for each in examine(look) if each.subject == "vCluster ml"]
    assert (found.level, found.check) == (Level.ADVISORY, "vcluster")
    assert "cannot be read" in found.cause


def test_a_vcluster_that_does_not_list_its_namespaces_is_read_all_the_same():
    with serving() as (api, url), vcluster_secrets.serving() as (tenants, inside):
        api.answers |= vcluster(int(inside.rpartition(":")[2]), vcluster_secrets.data())
        tenants.answers |= {path.format(""): (200, {"items": []}) for path in READS.values()}
        tenants.answers[READS["namespaces"]] = (403, {})
        look = seen(url)
    assert look.teams["ml"].inside.unread("namespaces")


def lists(times, wait, total_seconds=20.0):
    """What a server answers that puts a list off so many times, and how often it was asked."""
    with serving() as (api, url):
        asked = []

        def answer(_):
            asked.append(time.monotonic())
            api.answers["/api/v1/nodes"] = (429 if len(asked) < times else 200, answer)
            return {"items": [{"metadata": {"name": "a"}}]}

        api.answers["/api/v1/nodes"] = (429, answer)
        api.retry_after = wait
        client = Api.of_kubeconfig(kubeconfig(url), total_seconds=total_seconds)
        return client.lists({"nodes": "/api/v1/nodes"}, 1), asked


def test_what_is_put_off_is_asked_again_when_the_server_says():
    (found, refused), asked = lists(2, "1")
    assert ([*found], refused, len(asked)) == (["nodes"], {}, 3)
    assert all(later - sooner >= 1 for sooner, later in pairwise(asked))


@pytest.mark.parametrize("wait", ["3600", "60"])
def test_a_server_that_asks_for_more_time_than_there_is_is_not_waited_for(wait):
    (found, refused), asked = lists(9, wait)
    assert (found, len(asked)) == ({}, 1)
    assert str(refused["nodes"]) == BUSY


def test_a_host_that_stays_busy_is_no_unreached_host():
    """There is time left for the lists that it gives."""
    with serving() as (api, url):
        api.answers |= {path.format("").partition("?")[0]: (429, {}) for path in READS.values()}
        api.answers[READS["namespaces"]] = (200, {"items": []})
        host = Api.of_kubeconfig(kubeconfig(url), total_seconds=2.0)
        look = read_clusters(Source(Lab().look().settings, lambda: host))
    assert look.host.unreadable.keys() == READS.keys() - {"namespaces"}
