"""A word that is a stack's name is the stack; nothing agrees to a loss that was not shown."""

import pytest

from kai_fleet_cli.commands import updates
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading


@pytest.fixture
def two(project):
    """A folder with stacks lab and prod; the default one, sandbox, is there, too."""
    for name in ("prod", "sandbox"):
        text = reading.path_of("lab").read_text().replace("{name: lab", f"{{name: {name}")
        reading.path_of(name).write_text(text)
    return project


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["prod"], "up prod"),
        (["lab"], "up lab"),
        # The word names what it is of, and agrees to nothing.
        (["--yes", "prod"], "up prod"),
        (["--yes", "prod", "ml"], "up prod, without ml"),
        (["--stack", "prod", "--yes", "ml"], "up prod, without ml"),
        # With a stack that is written, each word is what may be lost.
        (["--stack", "prod", "--yes", "lab"], "up prod, without lab"),
        (["--yes", "sandbox"], "up sandbox, without sandbox"),
        (["sandbox"], "up sandbox"),
    ],
)
def test_a_stacks_name_is_taken_for_the_stack_of_an_update(two, words, asked):
    ran = two.run("up", *words)
    assert (ran.code, ran.refusal) == (0, ""), ran.out
    assert two.engine.asked == [asked]


@pytest.mark.parametrize("words", [["ml"], ["prod", "ml"], ["--stack", "lab", "prod"], ["prd"]])
def test_no_printed_command_agrees_to_what_was_not_shown(two, words):
    ran = two.run("up", *words)
    assert two.engine.asked == [] and ran.code != 0
    assert "an update is of all teams of stack" in ran.refusal
    assert "--yes" not in ran.refusal


@pytest.mark.parametrize("command", ["plan", "teams", "preview"])
def test_commands_that_look_take_it_too(two, command, monkeypatch):
    def opened(stack):
        raise UserError(f"opened {stack}")

    monkeypatch.setattr(updates, "for_stack", opened)
    by_word, by_flag = two.run(command, "lab"), two.run(command, "--stack", "lab")
    assert (by_word.code, by_word.out) == (by_flag.code, by_flag.out)
    assert by_word.refusal == by_flag.refusal
    for words in (["prd"], ["lab", "prod"], ["--stack", "lab", "prod"]):
        ran = two.run(command, *words)
        assert ran.code == 2, ran.out


def test_a_stack_in_a_teams_place_is_told_from_a_team(two):
    ran = two.run("team", "switch", "prod", "v0.16.8", "--stack", "lab")
    assert "prod is a stack: write --stack prod" in ran.refusal
