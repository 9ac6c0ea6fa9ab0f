"""What the step that applies shards takes away again."""

from kai_fleet.cluster.probes.kai import MANAGER, _without_ours


def owned(manager, fields):
    return {"manager": manager, "fieldsV1": {"f:spec": fields}}


def item(*entries):
    return {"metadata": {"name": "default", "uid": "u", "managedFields": list(entries)}}


def test_only_the_fields_that_were_applied_here_are_taken_away():
    usage = {".": {}, "f:clientType": {}, "f:usageParams": {".": {}, "f:windowSize": {}}}
    ours = owned(MANAGER, {"f:kValue": {}, "f:usageDBConfig": usage})
    others = owned("helm", {"f:placementStrategy": {".": {}, "f:gpu": {}}})
    assert _without_ours(item(others, ours))["spec"] == {"kValue": None, "usageDBConfig": None}


def test_of_a_mapping_of_somebody_else_only_our_part_goes():
    ours = owned(MANAGER, {".": {}, "f:placementStrategy": {"f:cpu": {}}})
    assert _without_ours(item(ours))["spec"] == {"placementStrategy": {"cpu": None}}


def test_the_mark_goes_and_another_object_of_that_name_is_left_alone():
    patch = _without_ours(item())
    assert patch == {"metadata": {"uid": "u", "labels": {"kai-fleet/shard": None}}}
