"""What the quotas of a team's namespace count."""

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.isolation.team_quotas import quotas
from kai_fleet.settings.sections.isolation import Bounds, Isolation


def hard(name, **isolation):
    bounds = Bounds(pods=10, objects=50)
    own = Isolation(bounds=bounds, **isolation)
    return quotas(DeclaredTeam("ml", gpus=2, isolation=own))[name]["hard"]


def test_pods_that_have_ended_are_counted_with_those_that_run():
    assert (hard("pods")["pods"], hard("pods")["count/pods"]) == ("10", "50")


def test_claims_are_none_without_a_granted_class_and_counted_with_one():
    for kind in ("resourceclaims", "resourceclaimtemplates"):
        key = f"count/{kind}.resource.k8s.io"
        assert hard("gpus")[key] == "0"
        assert hard("gpus", device_classes={"small": 1})[key] == "50"
