"""The rules as the plugin of kai-fleet asks them about the components of its package."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kai_fleet.fleet.deployed_state import DeployedState
from kai_fleet.package.request import Judgement, Subject
from kai_fleet.settings import Mistake
from kai_fleet_policies.problem import Level
from kai_fleet_policies.rules import BY_NAME, RULES, Rule
from kai_fleet_policies.validation import validate

_OF_VCLUSTER: Final = (
    *("sources-known", "vcluster-flags", "vcluster-isolation"),
    *("vcluster-access", "vcluster-store", "vcluster-resources"),
)
_RULES: Final[Mapping[Subject, Sequence[Rule]]] = {
    "stack": RULES,
    "vcluster": [BY_NAME[name] for name in _OF_VCLUSTER],
}


def judge(raw: Mapping[str, Any], deployed: DeployedState, subject: Subject) -> Judgement:
    """Judge the settings that a component stands for."""
    # What is a secret comes as one, and becomes one where it does not: nothing is in clear.
    verdict = validate(raw, deployed, written={}, only=_RULES[subject])
    return Judgement(
        verdict.settings,
        [Mistake(problem.path, problem.message) for problem in verdict.refused],
        [f"{it.subject}: {it.message}" for it in verdict.problems if it.level is Level.ADVISORY],
    )
