"""Nouns and verbs by number."""

import pytest

from kai_fleet.wording import agreeing, may_have_controls, number_with_noun, plural


@pytest.mark.parametrize(
    ("number", "thing", "verb", "says"),
    [
        (1, "pod", "waits", "1 pod waits"),
        (3, "pod", "waits", "3 pods wait"),
        (0, "queue", "is", "0 queues are"),
        (1, "GPU", "", "1 GPU"),
        (0.5, "GPU", "", "0.5 GPUs"),
        (1.0, "GPU", "", "1 GPU"),
        (2, "policy", "repeats", "2 policies repeat"),
        (2, "gateway", "has", "2 gateways have"),
        (2, "ingress", "", "2 ingresses"),
        (1_234_567, "resource", "", "1234567 resources"),
    ],
)
def test_a_count_agrees(number, thing, verb, says):
    assert number_with_noun(number, thing, verb) == says


def test_of_what_is_named_too():
    assert f"its spec {agreeing(1, 'is')}" == "its spec is"
    assert f"{plural(2, 'queue')} a and b {agreeing(2, 'goes')}" == "queues a and b go"


@pytest.mark.parametrize("text", ['"\x7fa"', '"\\u001b"', '"\u202e"'])
def test_a_quick_check_misses_no_control_character(text):
    assert may_have_controls(text)
    assert not may_have_controls('"a"')
