"""Which taints a toleration matches, by Kubernetes' own rules."""

import pytest

from kai_fleet.declaring.inputs import plain_spec
from kai_fleet.taints import closing_taint, tolerates

TAINT = {"key": "gpu", "value": "x", "effect": "NoSchedule"}
BARE = {"key": "gpu", "effect": "NoSchedule"}
# operator, value of the toleration: does it match gpu=x, and gpu without a value?
BY_OPERATOR = [
    ("Equal", "x", True, False),
    ("Equal", "y", False, False),
    ("Equal", "", False, True),
    ("Equal", None, False, True),
    ("Exists", None, True, True),
    ("Exists", "", True, True),
    ("", "x", True, False),
    ("", None, False, True),
    (None, "x", True, False),
    (None, "y", False, False),
    (None, "", False, True),
    (None, None, False, True),
    ("Gt", "x", False, False),
]


def toleration(key="gpu", operator=None, value=None, effect=None, **more):
    fields = {"key": key, "operator": operator, "value": value, "effect": effect}
    return {name: field for name, field in fields.items() if field is not None} | more


@pytest.mark.parametrize(("operator", "value", "with_value", "without_value"), BY_OPERATOR)
@pytest.mark.parametrize(
    ("effect", "fits"), [(None, True), ("", True), ("NoSchedule", True), ("NoExecute", False)]
)
@pytest.mark.parametrize(("key", "is_key"), [("gpu", True), ("other", False), ("", True)])
@pytest.mark.parametrize("seconds", [{}, {"tolerationSeconds": 30}])
def test_tolerates_as_kubernetes_does(
    operator, value, with_value, without_value, effect, fits, key, is_key, seconds
):
    spec = toleration(key, operator, value, effect, **seconds)
    assert tolerates(spec, TAINT) is (with_value and fits and is_key)
    assert tolerates(spec, BARE) is (without_value and fits and is_key)


@pytest.mark.parametrize(
    ("written", "matches"),
    [
        ({"key": "gpu"}, True),
        ({"key": "gpu", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "effect": "NoExecute"}, False),
        ({"key": "gpu", "value": "x"}, True),
        ({"key": "gpu", "value": "y"}, False),
        ({"key": "gpu", "operator": "Equal"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
    ],
)
def test_a_stack_file_means_any_value_or_effect_where_it_writes_none(written, matches):
    assert tolerates(plain_spec(written), TAINT) is matches


def test_closing_taint_is_one_of_each_node():
    other = {"key": "spot", "effect": "NoExecute"}
    assert closing_taint([], [[TAINT], [other]]) == TAINT
    assert closing_taint([plain_spec({"key": "gpu"})], [[TAINT, other], [other]]) == other
    assert closing_taint([], [[TAINT], []]) is None
    assert closing_taint([], []) is None


def test_closing_taint_leaves_out_temporary_and_preferred_ones():
    pressure = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    preferred = {"key": "gpu", "effect": "PreferNoSchedule"}
    assert closing_taint([], [[pressure, preferred]]) is None


def test_closing_taint_is_found_for_a_pod_that_means_an_empty_value():
    """`{key: gpu, effect: NoSchedule}` in a pod's spec does not tolerate gpu=x:NoSchedule."""
    assert closing_taint([{"key": "gpu", "effect": "NoSchedule"}], [[TAINT]]) == TAINT
