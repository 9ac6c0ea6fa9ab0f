"""The class of a control plane's volume: one that the platform lists."""

from collections.abc import Callable

import pytest

from kai_fleet.isolation.bounds import pod_bounds
from kai_fleet_policies.finding import Finding, Level
from kai_fleet_policies.rules.vcluster_store import vcluster_storage_class
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.settings import Settings
from tests.unit.stack.stack_arguments import settings_of, stack, team_stack

pytestmark = pytest.mark.texts("rules")

GP3 = {"vcluster": {"storageClass": "gp3"}}


def found(settings: Settings) -> list[Finding]:
    host, *_ = clusters_of(settings)
    return list(vcluster_storage_class.check(host))


def listed(raw: dict[str, object]) -> object:
    args = Arguments(settings_of(raw)).namespace("ml")
    return pod_bounds("ml", args).get("volumeClasses")


def test_vcluster_storage_class_refuses_one_that_is_not_listed(texts: Callable[..., None]) -> None:
    (problem,) = found(settings_of(stack(GP3)))
    assert problem.level is Level.MANDATORY
    assert problem.path == "kai-fleet:teams.ml.vcluster.storageClass"
    texts(problem)


@pytest.mark.parametrize(
    "raw",
    [
        stack(),
        stack(GP3, isolation={"volumeClasses": ["gp3"]}),
        stack({**GP3, "isolation": {"volumeClasses": ["gp3"]}}),
        stack(GP3, vcluster={"storageClass": "gp3"}),
        stack({**GP3, "isolation": {"level": "off"}}),
        stack({"vcluster": {"storageClass": ""}}, vcluster={"storageClass": "gp3"}),
    ],
)
def test_vcluster_storage_class_listed_or_everybodys_passes(raw: dict[str, object]) -> None:
    assert found(settings_of(raw)) == []


def test_pod_bounds_volume_classes_are_the_listed_and_that_of_all_vclusters() -> None:
    assert listed(stack()) is None
    assert listed(stack(GP3)) is None, "what a team writes for itself grants it nothing"
    both = {"isolation": {"volumeClasses": ["fast"]}, "vcluster": {"storageClass": "gp3"}}
    assert listed(stack(**both)) == "fast,gp3"


def test_vcluster_storage_class_of_a_team_stack_is_what_it_is_granted() -> None:
    grant = {"isolation": {"volumeClasses": ["gp3"]}}
    for granted, refused in ((None, 1), (grant, 0)):
        loaded = team_stack(stack(), grant=granted, **GP3)
        assert loaded.settings is not None
        assert len(found(loaded.settings)) == refused
