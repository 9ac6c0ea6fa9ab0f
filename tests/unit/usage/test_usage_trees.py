"""Whatever the tree and the pods: sums add up."""

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kai_usage.cluster_usage import count
from tests.unit.usage.usage_samples import answers, pod, queue

AMOUNTS = st.one_of(st.just(-1), st.integers(0, 8), st.sampled_from([0.25, 0.5, 1.75]))


@st.composite
def clusters(draw):
    """Queues that each hang on one before them, or on none; pods in leaves and elsewhere."""
    count = draw(st.integers(1, 9))
    items = []
    for at in range(count):
        above = draw(st.one_of(st.none(), st.integers(0, at - 1))) if at else None
        parent = None if above is None else f"q{above}"
        items.append(queue(f"q{at}", parent, gpu=(draw(AMOUNTS), draw(AMOUNTS))))
    pods = []
    for at in range(draw(st.integers(0, 12))):
        name = f"q{draw(st.integers(0, count - 1))}"
        node = draw(st.sampled_from(["ml-0", None]))
        if draw(st.booleans()):
            pods.append(pod(f"p{at}", name, node, asks={"nvidia.com/gpu": str(at % 5)}))
        else:
            pods.append(
                pod(f"p{at}", name, node, gpu_fraction=draw(st.sampled_from(["0.1", "0.7"])))
            )
    return items, pods


def near(one, other):
    return math.isclose(one, other, abs_tol=1e-4)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is slow
@given(clusters())
def test_a_tree_adds_up(drawn):
    items, pods = drawn
    found = count(answers(queues=items, pods=pods))
    assert len(found.queues) == len(items)
    for waits in (True, False):
        own = dict.fromkeys(found.queues, 0.0)
        for each in found.pods:
            own[each.queue] += each.gpu_amount if each.waits is waits else 0.0
        amounts = {}
        for name, each in found.queues.items():
            share = each.shares["gpu"]
            amounts[name] = share.waiting if waits else share.in_use
        for name, amount in amounts.items():
            below = (amounts[each.name] for each in found.queues.values() if each.parent == name)
            assert near(amount, own[name] + sum(below))
    for each in found.queues.values():
        share = each.shares["gpu"]
        borrowed = 0.0 if share.quota == -1 else max(0.0, share.in_use - share.quota)
        assert near(share.borrowed, borrowed)
        below = [other.name for other in found.queues.values() if other.parent == each.name]
        assert each.children == sorted(below)
