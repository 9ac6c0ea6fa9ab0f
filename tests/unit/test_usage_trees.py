"""Whatever the tree and the pods: sums add up, and nobody lends what nobody borrows."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kai_fleet_cli.usage.counting import count
from tests.unit.usage_samples import answers, pod, queue

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


@given(clusters())
def test_a_tree_adds_up(drawn):
    items, pods = drawn
    found = count(answers(queues=items, pods=pods))
    assert len(found.queues) == len(items)
    own = dict.fromkeys(found.queues, 0.0)
    for one in found.pods:
        if not one.waits:
            own[one.queue] += one.amounts.gpu
    for name, one in found.queues.items():
        share = one.share("gpu")
        below = [found.queues[child].share("gpu") for child in one.children]
        assert near(share.in_use, own[name] + sum(child.in_use for child in below))
        assert share.borrowed >= 0 and share.lent >= 0
        assert not (share.borrowed and share.lent)
        if share.quota == -1:
            assert share.borrowed == share.lent == 0
        else:
            assert near(share.borrowed, max(0.0, share.in_use - share.quota))
            assert share.lent <= max(0.0, share.quota - share.in_use) + 1e-4
        # What those below lend is borrowed beside them, or lent by all of them together.
        borrowed = sum(child.borrowed for child in below)
        assert sum(child.lent for child in below) <= borrowed + share.lent + 1e-4
    tops = [one.share("gpu") for one in found.queues.values() if one.parent is None]
    assert sum(one.lent for one in tops) <= sum(one.borrowed for one in tops) + 1e-4
    assert near(sum(one.in_use for one in tops), sum(own.values()))
