"""What was not read is not absent: no finding and no command rests on a list that failed."""

from collections import defaultdict
from dataclasses import replace

import pytest

from kai_fleet_cli.doctor import checks
from kai_fleet_cli.doctor.checks import examine, judgements
from kai_fleet_cli.doctor.checks.bounds import undeclared_policies
from kai_fleet_cli.doctor.read import READS
from kai_fleet_cli.doctor.required import required_objects
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState, UnreadError
from kai_fleet_policies.finding import Level, commands_of
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_stack.declared import host_of
from tests.engine.doctor_repairs import LOOK, shape
from tests.unit.cli.doctor.doctor_cases import CASES, lab_of
from tests.unit.cli.doctor.doctor_samples import Lab, space
from tests.unit.stack.test_team_stack_settings import loaded

BUSY = "429 Too Many Requests"


def spoilt(case):
    """The snapshot of a case; of a healthy stack for none."""
    return lab_of(case).look() if case else Lab().look()


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


@pytest.mark.parametrize("case", ["", *CASES])
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
    look = without(
        spoilt("a volume whose node is gone"), kind, **{where: True}, why="403 Forbidden"
    )
    found = next(each for each in examine(look) if (each.check, each.path) == ("pending", "ml"))
    assert found.level is Level.INFO
    assert found.cause.startswith("no node has room for it: ")
    assert f"not known: this user may not list {kind} there" in found.cause


def test_whoever_takes_the_results_has_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checks.time, "monotonic", lambda: now[0])
    for _, faults, _ in judgements(Lab().look()):
        assert faults == []
        now[0] += checks.JUDGE_SECONDS


def test_in_a_teams_own_stack_the_policy_for_prometheus_is_not_told_to_be_deleted():
    settings = loaded().settings
    declared = host_of(settings)
    teams = {team.name: team for team in declared.teams}
    required = tuple(required_objects(settings, declared, teams))
    names = [each.name for each in required if each.kind == "NetworkPolicy"]
    policies = [
        space(name, namespace="team-vision") for name in (*names, "kai-fleet-monitoring", "open")
    ]
    host = Cluster(HOST, declared, {"networkpolicies": policies})
    state = TeamState(teams["vision"])
    look = Snapshot(settings, host, {"vision": state}, required)
    assert [each.name for each in undeclared_policies(state, look)] == ["team-vision/open"]


def test_a_pod_without_volumes_asks_for_no_list_of_them():
    lab = Lab()
    lab.waits("w")
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
