"""Every pair of versions: which way the program takes, and that it is the one the facts demand."""

import itertools

import pytest

from kai_fleet.releases import KAI, VCLUSTER, version_key, why_replaced
from kai_fleet_policies.rules.upgrade_steps import vcluster_refusal

# Operators whose upgrade hook makes kai-config anew (K12), read from the charts.
RECREATE = {"v0.9.8", "v0.9.20", "v0.10.5", "v0.13.4"}
CHART_MAKES_BINDER = {"v0.9.8", "v0.9.20"}
WITHOUT_OPERATOR = {"v0.7.11", "v0.7.13", "v0.8.5"}
PAIRS = list(itertools.permutations(KAI, 2))


def way(before, after):
    return why_replaced(KAI[before], KAI[after])


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_in_place_only_where_nothing_is_known_to_break(before, after):
    breaks = (
        version_key(after) < version_key(before)
        or "v0.7.11" in (before, after)
        or (before in WITHOUT_OPERATOR) != (after in WITHOUT_OPERATOR)
        or (before in CHART_MAKES_BINDER) != (after in CHART_MAKES_BINDER)
        or after in RECREATE
    )
    assert bool(way(before, after)) == breaks


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("v0.7.11", "v0.9.3", "whose CRD helm upgrade does not install"),
        ("v0.9.3", "v0.9.8", "both claim the binder's objects"),
        ("v0.9.3", "v0.7.11", "helm cannot downgrade this chart"),
        ("v0.16.8", "v0.9.3", "helm cannot downgrade this chart"),
        ("v0.12.23", "v0.13.4", "recreates kai-config"),
    ],
)
def test_a_replacement_says_why(before, after, why):
    assert why in way(before, after)


@pytest.mark.parametrize(("before", "after"), list(itertools.pairwise(VCLUSTER)))
def test_vcluster_goes_up_line_by_line(before, after):
    assert vcluster_refusal(before, after) is None


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("v0.30.5", "v0.32.3", "skips v0.31: vCluster goes one minor version at a time"),
        ("v0.30.5", "v0.32.3", "write v0.31.3 first"),
        ("v0.27.3", "v0.36.1", "skips v0.28 to v0.35: "),
        ("v0.27.3", "v0.36.1", "write v0.28.1 first"),
        ("v0.36.1", "v0.99999999999.0", "skips v0.37 to v0.99999999998: "),
        ("v0.36.1", "v1.0.0", "v0.36.1 → v1.0.0 is a step to another major version, which is"),
        ("v0.36.1", "v1.40.0", "not tested; write v0.36.1, or remove the team and add it again"),
        ("v0.36.1", "v0.35.3", "downgrade"),
        ("v0.36.1", "v0.36.0", "downgrade"),
    ],
)
def test_vcluster_jumps_and_downgrades_are_refused_with_the_path(before, after, says):
    assert says in "; ".join(vcluster_refusal(before, after) or ())
