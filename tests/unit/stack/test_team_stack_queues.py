"""What the account of a team's own stack may write of queues on a host with a KAI, by the policies
that a plan declares. `tests/attacks` sends the same to an API server.
"""

import pytest

from kai_fleet_cli.plan.recorder import record
from tests.policy_evaluation import account, refusals_by
from tests.stack_files import queue_object

POLICY = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
UNLIMITED = {"cpu": {"quota": "unlimited"}, "memory": {"quota": "unlimited"}}
LEAF = {**UNLIMITED, "gpu": 4}
NODE_POOL = "kai.scheduler/node-pool"
TREE = "kai-fleet/tree"


def host(version="v0.16.8", queues=None, granted="mine", **more):
    tree = queues or {"top": {**UNLIMITED, "children": {"mine": LEAF, "audio-live": LEAF}}}
    return {
        "cluster": {"name": "lab", "context": "lab"},
        "kai": {"version": version, **more},
        "queues": tree,
        "teamStacks": {"audio": {"gpus": 4, "parentQueue": granted}},
    }


def policies(raw):
    """The specs of the policies of queues by name, as the plan declares them."""
    found = {}
    for item in record("lab", raw):
        name = item.inputs.get("metadata", {}).get("name", "")
        if item.type == POLICY and name in ("kai-fleet-team-stack-audio", "kai-fleet-queue-specs"):
            found[name] = item.inputs["spec"]
    assert len(found) == 2
    return found


@pytest.fixture(scope="module")
def declared():
    return policies(host())


def queue(name="audio-x", parent="mine", labels=None, spec=None, **metadata):
    made = queue_object(name, {}, parent)
    made["metadata"] |= {"labels": {TREE: "audio-queues", **(labels or {})}, **metadata}
    made["spec"] |= spec or {}
    return made


def served(queue, **more):
    """As the API server has it."""
    own = {"uid": "1", "generation": 1, "resourceVersion": "7", "creationTimestamp": "2026"}
    return {**queue, "metadata": {**own, "managedFields": [{}], **queue["metadata"], **more}}


def refused(declared, body, before=None, operation=None, user=None):
    user = user or account("kai-fleet-team-stacks", "audio")
    operation = operation or ("CREATE" if before is None else "UPDATE")
    request = {"operation": operation, "userInfo": user}
    return [
        line
        for spec in declared.values()
        if operation in spec["matchConstraints"]["resourceRules"][0]["operations"]
        for line in refusals_by(spec, body and served(body), request, before and served(before))
    ]


# Metadata of a queue, by its field: what the account may write of it, and what nobody of the team.
WRITTEN = {
    "name": (queue(), queue("audio-x" + "y" * 57)),
    "tree": (queue(), queue(labels={TREE: "host-queues"})),
    "a label": (queue(), queue(labels={"example.com/cost": "1"})),
    "a label of the platform": (queue(), queue(labels={"kai-fleet/team": "nlp"})),
    "a label of a shard": (queue(), queue(labels={NODE_POOL: "gold"})),
    "an annotation": (
        queue(annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}),
        queue(annotations={"helm.sh/resource-policy": "keep"}),
    ),
    "finalizers": (queue(), queue(finalizers=["example.com/never"])),
    "ownerReferences": (queue(), queue(ownerReferences=[{"kind": "Project", "name": "x"}])),
    "generateName": (queue(), queue(generateName="audio-")),
    "a field of tomorrow": (queue(), queue(ownedBy="nlp")),
    "displayName": (queue(spec={"displayName": "audio"}), queue(spec={"displayName": "nlp"})),
    "displayName with more": (
        queue(spec={"displayName": "audio: night"}),
        queue(spec={"displayName": "audiology"}),
    ),
    "displayName of a longer name": (
        queue(spec={"displayName": "audio-night"}),
        queue(spec={"displayName": "audio-live"}),
    ),
    "displayName of many lines": (queue(), queue(spec={"displayName": "audio\nnlp"})),
}


@pytest.mark.parametrize("field", WRITTEN)
def test_metadata_is_what_the_stack_writes_and_nothing_else(declared, field):
    passes, denied = WRITTEN[field]
    assert refused(declared, passes) == []
    (line,) = refused(declared, denied)
    assert "audio" in line and ("drop" in line or "leave it out" in line or "at most" in line)
    (line,) = refused(declared, denied, before=queue())
    assert "cannot judge" not in line


def test_what_others_wrote_stays_and_may_go(declared):
    noted = {"labels": {"example.com/cost": "1"}, "annotations": {"example.com/by": "ann"}}
    noted |= {"finalizers": ["example.com/a", "example.com/b"], "ownerReferences": [{"uid": "1"}]}
    before = queue(**noted)
    assert refused(declared, queue(**noted, spec={"priority": 5}), before) == []
    assert refused(declared, queue(**{**noted, "finalizers": ["example.com/a"]}), before) == []
    assert refused(declared, queue(), before) == []
    changed = {**noted, "labels": {"example.com/cost": "2"}}
    assert len(refused(declared, queue(**changed), before)) == 1
    grown = {**noted, "finalizers": ["example.com/a", "example.com/c"]}
    assert len(refused(declared, queue(**grown), before)) == 1


def test_others_on_the_host_write_what_they_like(declared):
    body = queue("nlp", "top", labels={TREE: "host-queues"}, finalizers=["example.com/x"])
    body["spec"] |= {"displayName": "anything", "priority": -1}
    for user in ({"username": "admin"}, account("kai-resource-management", "projects")):
        assert refused(declared, body, user=user) == []


def test_its_queues_are_deleted_by_it_and_no_others(declared):
    assert refused(declared, None, before=queue(), operation="DELETE") == []
    for name in ("mine", "audio-live", "top"):
        assert refused(declared, None, before=queue(name), operation="DELETE") != []


SPECS = [
    {"preemptMinRuntime": "7 days"},
    {"reclaimMinRuntime": "99999999999h"},
    {"reclaimMinRuntime": ""},
    {"preemptMinRuntime": "-1h"},
    {"priority": 2**63 - 1},
    {"priority": -1},
    {"resources": {"gpu": {"quota": 1e308}}},
    {"resources": {"cpu": {"limit": -7}}},
    {"resources": {"memory": {"quota": -0.5}}},
    {"resources": {"gpu": {"overQuotaWeight": -1}}},
    {"resources": {"gpu": {"overQuotaWeight": 1e9}}},
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_spec_that_no_rule_would_pass_is_denied_and_says_what_to_write(declared, spec):
    (line,) = refused(declared, queue(spec=spec))
    assert "; write " in line
    (line,) = refused(declared, queue(spec=spec), before=queue())
    assert "; write " in line
    # What is stored already does not keep its labels from being put right.
    assert refused(declared, queue(spec=spec), before=queue(spec=spec)) == []


def test_a_spec_that_the_rules_pass_is_admitted(declared):
    shares = {"quota": 0.5, "limit": -1, "overQuotaWeight": 0}
    spec = {
        "resources": dict.fromkeys(("cpu", "memory", "gpu"), shares),
        "priority": 0,
        "preemptMinRuntime": "1h30m",
        "reclaimMinRuntime": "0",
    }
    assert refused(declared, queue(spec=spec)) == []
    assert refused(declared, queue(spec={"resources": {"cpu": {"quota": -1}}})) == []


def test_it_is_of_the_shard_of_the_granted_queue():
    shards = {"shards": {"gold": {}}}
    top = {**UNLIMITED, "shard": "gold", "children": {"mine": LEAF}}
    declared = policies(host(queues={"top": top}, **shards))
    assert refused(declared, queue(labels={NODE_POOL: "gold"})) == []
    for labels in ({}, {NODE_POOL: "silver"}):
        (line,) = refused(declared, queue(labels=labels))
        assert line.endswith("write the label kai.scheduler/node-pool: gold")


@pytest.mark.parametrize("version", ["v0.9.20", "v0.12.23"])
def test_through_v0_12_it_makes_no_level_that_kai_takes_for_the_platforms(version):
    declared = policies(host(version))
    (line,) = refused(declared, queue())
    assert line.endswith("drop it: pods name mine")
    assert refused(declared, None, before=queue(), operation="DELETE") == []


def test_there_are_no_more_levels_than_letters_in_a_name(declared):
    longest = "audio-" + "x" * 57
    assert refused(declared, queue(longest, longest[:-1])) == []
    assert refused(declared, queue(longest + "x", longest)) != []


def test_a_queue_of_the_platform_with_the_name_of_the_team_is_not_the_teams():
    tree = {"audio": {**UNLIMITED, "children": {"audio-own": LEAF, "nlp": LEAF}}}
    declared = policies(host(queues=tree, granted="audio-own"))
    assert refused(declared, queue("audio-own-x", "audio-own")) == []
    moved = queue("audio", "audio-own")
    for body, before in ((moved, queue("audio", None)), (queue("audio-y", "audio"), None)):
        (line, *_) = refused(declared, body, before)
        assert "may write only queues named audio" in line
    assert refused(declared, None, before=queue("audio"), operation="DELETE") != []
