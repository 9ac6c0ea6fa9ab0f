"""What somebody removed by hand is removed by the program afterwards: that ends well."""

import pytest

from tests.faults.desired import converge, with_ml, without_ml
from tests.faults.drifts import Hands, delete_namespace, uninstall_kai

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]

UP = ("up",)
REMOVE = ("team", "remove", "ml", "--yes")


def uninstall_vcluster(hands):
    hands.helm(hands.case.host, "uninstall", "ml", "-n", "team-ml")


def test_a_team_whose_removal_failed_is_put_back(case, reference, foreign):
    """Its vCluster comes back on the volume of the old one, with all that was declared in it."""
    case.edit(with_ml)
    converge(case)
    uninstall_vcluster(Hands.of(case))
    removal = case.fleet(*REMOVE)
    assert removal.code != 0
    assert "somebody uninstalled a release by hand" in removal.last
    case.edit(with_ml)
    reported = "".join(converge(case, ("up", "--refresh")))
    assert "API server does not answer" not in reported
    assert reference.differences(case, "added") == []
    assert "Nothing changed" in case.up().reported


@pytest.mark.parametrize(
    ("by_hand", "command"),
    [
        (uninstall_kai, UP),
        (uninstall_vcluster, REMOVE),
        (lambda hands: delete_namespace(hands, "team-ml"), UP),
        (lambda hands: delete_namespace(hands, "team-ml"), REMOVE),
    ],
    ids=["KAI's release", "the vCluster's release", "the namespace", "the namespace, alone"],
)
def test_it_is_gone_already(case, reference, foreign, by_hand, command):
    case.edit(with_ml)
    converge(case)
    by_hand(Hands.of(case))
    if command == UP:
        case.edit(without_ml)
    reported = converge(case, command)
    assert "ml" not in case.teams()
    assert reference.differences(case, "removed") == [], "\n".join(reported)
    assert "Nothing changed" in case.up().reported
