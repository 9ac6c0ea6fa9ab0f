"""Lines of a narrow terminal: what somebody copies or looks up is in one piece."""

import io

import pytest
from rich.console import Console

from kai_fleet.finding import Finding, Level
from kai_fleet_cli.display.terminal import print_wrapped, units
from kai_fleet_cli.doctor.diagnosis import Diagnosis, show

REMOVE = ".venv/bin/fleet up --stack a-stack-of-a-long-name --remove-team a-team-of-forty-letters"
KEY = "kai-fleet:teams.a-team-of-forty-letters-in-its-long-name.queues.department-of-vision"


def shown(words, lead="", width=80):
    out = io.StringIO()
    print_wrapped(Console(file=out, width=width), words, lead, indent=4)
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    "unit",
    [
        KEY,
        "kai-fleet:removed: [vision, research]",
        "{quota: 4, limit: 8}",
        '`kubectl -n team-ml patch pvc data-ml-0 -p \'{"spec": {"a": 1}}\'`',
        "make up STACK=prod",
        "pulumi config set --secret --path 'kai-fleet:x' --stack prod",
    ],
)
def test_a_key_a_command_and_yaml_are_one_unit(unit):
    assert unit in units(f"put it back, or write {unit} or go on")
    assert f"{unit}," in units(f"put it back, or write {unit}, or go on")


def test_lines_end_between_words_and_a_command_is_on_one_line():
    words = f"is gone; put it back, or for one run {REMOVE}, or name it: {KEY}"
    lines = shown(words, "refused")
    assert [line for line in lines if REMOVE in line]
    assert [line for line in lines if KEY in line]
    assert all(len(line) <= 80 or REMOVE in line or KEY in line for line in lines)
    assert " ".join(line.strip() for line in lines) == f"refused {words}"
    assert all(line.startswith("    ") for line in lines[1:])


def test_the_name_of_a_tool_is_no_command_yet_and_a_brace_takes_not_everything_along():
    words = "these charts make pods that name no queue (helm cannot downgrade); pulumi, and kubectl"
    assert units(words) == words.split()
    assert max(map(len, units("{ " + "word " * 200))) < 400


def test_a_finding_of_the_doctor_has_its_key_and_its_command_in_one_piece():
    command = "kubectl --context prod -n team-vision-of-a-long-name delete pods train-a train-b"
    broken = Finding(
        Level.MANDATORY,
        *("vision", "queue", "department-of-vision"),
        f"it is not as declared: gpu limit is unlimited, not 4; see {KEY}",
        f"write 4 at {KEY}, then `{command}`",
    )
    warning = Finding(Level.ADVISORY, "host", "node", "a", "it is cordoned")
    out = io.StringIO()
    show(Diagnosis("prod", (warning, broken)), Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert lines[0] == "broken vision: queue department-of-vision"
    assert [line.strip() for line in lines].count(f"`{command}`") == 1
    assert sum(KEY in line for line in lines) == 2
    assert lines[-2].startswith("stack prod: 1 broken, 1 warning; ")
    assert lines[-1].endswith("`pulumi refresh --preview-only --stack prod`")
