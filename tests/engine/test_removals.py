"""What is no longer declared, beside a resource that failed, in the engine itself."""

import json

import pytest
from pulumi import CustomResource, ResourceOptions, automation
from pulumi_command.local import Command

from kai_fleet.one_run import REMOVALS_WAIT
from kai_fleet.ownership import deployed
from kai_fleet_stack.removals import DeclaredResources

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def declare(*, later: bool) -> None:
    """`user` needs `needed` and `gate`. Later `needed` and `other` are gone, and `gate` fails."""
    run = "false" if later else "true"
    gate = Command("gate", create="true", update="false", environment={"LATER": run})
    before: list[CustomResource] = [gate]
    if not later:
        before.append(Command("needed", create="true"))
        Command("other", create="true")
    Command("user", create="true", opts=ResourceOptions(depends_on=before))


def declare_with_care(*, later: bool) -> None:
    resources = DeclaredResources()
    declare(later=later)
    resources.keep_others_if_one_fails(deployed.read())


def names(engine) -> set[str]:
    resources = json.loads(engine.state())["deployment"]["resources"]
    return {item["urn"].rpartition("::")[2] for item in resources}


def fails(engine, program) -> str:
    lines: list[str] = []
    with pytest.raises(automation.CommandError):
        engine.stack.up(program=program, continue_on_error=True, on_output=lines.append)
    return "\n".join(lines)


def test_what_a_skipped_resource_may_need_is_kept(engine):
    engine.up(lambda: declare_with_care(later=False))
    assert {"needed", "other", "user"} <= names(engine)
    for _ in range(2):
        assert REMOVALS_WAIT in fails(engine, lambda: declare_with_care(later=True))
        assert {"needed", "other", "user"} <= names(engine)


def test_what_nothing_failed_beside_is_removed(engine):
    engine.up(lambda: declare_with_care(later=False))
    engine.up(lambda: Command("gate", create="true", environment={"LATER": "true"}))
    assert not {"needed", "other", "user"} & names(engine)


def test_without_removals_the_engine_says_what_failed_alone(engine):
    engine.up(lambda: declare_with_care(later=False))

    def only_failing() -> None:
        resources = DeclaredResources()
        gate = Command("gate", create="true", update="false", environment={"LATER": "yes"})
        needed, _ = Command("needed", create="true"), Command("other", create="true")
        Command("user", create="true", opts=ResourceOptions(depends_on=[gate, needed]))
        resources.keep_others_if_one_fails(deployed.read())

    assert REMOVALS_WAIT not in fails(engine, only_failing)


def test_the_engine_alone_still_refuses_its_own_state(engine):
    """If this fails, the engine keeps what is needed: the product's own care may go."""
    engine.up(lambda: declare(later=False))
    fails(engine, lambda: declare(later=True))
    with pytest.raises(automation.CommandError, match="refers to missing"):
        engine.stack.preview(program=lambda: declare(later=True))
    engine.tool("pulumi", "state", "repair", "--yes", "--stack", engine.name)
