"""The commands that the pages about teams show are there, with the options that they show."""

import re
import shlex

import pytest
from typer.testing import CliRunner

from kai_fleet_cli.__main__ import app
from kai_fleet_cli.stack_file.reading import ROOT

PAGES = ["README.md", "docs/teams.md", "docs/blue-green.md"]


def shown():
    """Every `fleet teams` and `fleet team …` line of the pages' console blocks."""
    for page in PAGES:
        text = (ROOT / page).read_text().replace("\\\n", " ")
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                if found := re.match(r"\s*(?:\.venv/bin/python -m )?fleet (teams?\b.*)", line):
                    yield page, shlex.split(found[1], comments=True)


COMMANDS = list(shown())


def test_the_pages_show_every_command():
    names = {words[1] for _, words in COMMANDS if words[0] == "team"}
    assert names == {"add", "switch", "rollback", "remove", "kubeconfig"}


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_command_of_a_page_is_there(page, words):
    command = words[:2] if words[0] == "team" else words[:1]
    helped = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    assert helped.exit_code == 0, f"{page}: {' '.join(words)}"
    for option in (word for word in words if word.startswith("--")):
        assert option in helped.output, f"{page}: {' '.join(words)}"
