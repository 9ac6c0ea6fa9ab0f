"""What the doctor says of each case of the table: every cause with its fix, and nothing else."""

import re

import pytest

from kai_fleet_cli.doctor.diagnosis import WORDS
from kubectl_fleet.cluster import Snapshot
from kubectl_fleet.reasons import Reasons
from kubectl_fleet.tree import Usage
from tests.engine.doctor_repairs import LOOK, OF_LOST_VOLUMES, OF_STORES, REPAIR, shape
from tests.unit.cli.doctor.doctor_cases import CASES, lab_of
from tests.unit.cli.doctor.doctor_samples import LONG_AGO, NOW, Lab, by_hand, in_host_mode, space

pytestmark = pytest.mark.texts("doctor")

# `tests/faults/test_host_troubles.py` runs the first; no test runs the second on a cluster.
UNTRIED = {"kubectl uncordon ml-0", "kubectl patch validatingadmissionpolicybindings"}
COMMANDS = REPAIR | LOOK | OF_LOST_VOLUMES | OF_STORES | UNTRIED


def cases(*, ill):
    return [
        pytest.param(name, id=f"{case['table']}: {name}")
        for name, case in CASES.items()
        if bool(case["finds"]) is ill
    ]


@pytest.mark.parametrize("case", cases(ill=True))
def test_the_doctor_finds(case, texts):
    found = lab_of(case).ill()
    assert [f"{each.path} {WORDS[each.level]} {each.check}" for each in found] == [
        *CASES[case]["finds"]
    ], "\n".join(map(str, found))
    for each in found:
        assert re.findall("`([^`]*)`", each.fix) == [*each.commands], each
        for command in each.commands:
            assert command == "make up STACK=lab" or shape(command) in COMMANDS, command
        words = re.sub("`[^`]*`", "", each.fix)
        assert each.cause and each.fix, each
        assert not re.search(r"`|\b(kubectl|helm|fleet|pulumi) [a-z-]", words), each
        assert not re.search(r"(?<!\{)\{[a-z_]+\}", f"{each.cause}{each.fix}"), each
    said = "\n".join(map(str, found))
    assert [words for words in CASES[case].get("never", []) if words in said] == []
    texts(*found)


@pytest.mark.parametrize("case", cases(ill=False))
def test_the_doctor_finds_nothing(case):
    assert lab_of(case).ill() == []


def test_a_healthy_stack_has_no_findings():
    assert Lab().ill() == []
    assert in_host_mode().ill() == []


@pytest.mark.parametrize(
    ("resource", "kept"),
    [
        ("services.", "services/web"),
        ("podgroups.scheduling.run.ai", "podgroups.scheduling.run.ai/web"),
    ],
)
def test_what_keeps_a_namespace_is_named_with_its_api_group(resource, kept):
    deleted = {"deletionTimestamp": LONG_AGO}
    remains = {"type": "NamespaceContentRemaining", "status": "True"}
    remains["message"] = f"Some resources are remaining: {resource} has 1 resource instances"
    namespace = space("old", **deleted) | {"status": {"conditions": [remains]}}
    item = space("web", namespace="old", finalizers=["acme.io/keep"], **deleted)
    lab = Lab()
    lab.ml["namespaces"].append(namespace)
    lab.ml[resource.partition(".")[0]].append(item)
    (found,) = lab.ill()
    assert f" patch {kept} -n old " in found.fix


@pytest.mark.timeout(60)
def test_many_queues_of_a_tenant_take_no_time():
    lab = Lab()
    for n in range(3_000):
        parent = {"spec": {"parentQueue": f"q{n - 1:05}" if n else None}}
        lab.ml["queues"].append(by_hand(f"q{n:05}") | parent)
    assert any("delete queue q02999 q02998" in entry.fix for entry in lab.ill())


def reason_of_kubectl(lab, name):
    """What `kubectl fleet pending` says of a pod."""
    objects = lab.look().teams["ml"].inside.objects
    served = {kind: [{"spec": {}, **each} for each in items] for kind, items in objects.items()}
    usage = Usage(Snapshot(served, set(), "default", None, False, "kubectl", NOW))
    (found,) = (each for each in usage.pods if each.name == name)
    return Reasons(usage).first_reason(found)


OF_W = [
    name
    for name, case in CASES.items()
    if case["finds"] and "w" in {**case.get("waits", {}), **case.get("runs", {})}
]
OF_W.remove("labels that no node has, where an autoscaler may make one")  # kubectl knows no stack


@pytest.mark.parametrize("case", OF_W)
def test_the_doctor_and_kubectl_know_the_reasons_of_the_same_pods(case):
    lab = lab_of(case)
    why = reason_of_kubectl(lab, "w")
    if why is None or "nothing known gives a reason" in why.cause:
        return
    found = [each for each in lab.ill() if "default/w" in each.name]
    assert found, why
    assert not any("nothing known gives a reason" in each.cause for each in found), why
