"""What README and docs tell people to type works: commands, stack files, code and links."""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from kai_fleet_cli.app import app
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.reading import ROOT, parse
from kai_fleet_stack import validation
from kai_fleet_stack.settings.mistakes import model_and_mistakes
from kai_fleet_stack.settings.team_stack import TeamStack
from sandbox.tools import toolbox
from tests.unit.repository import markdown_pages

pytestmark = pytest.mark.long

COMMANDS = markdown_pages.commands()
# A block about one key is completed to a stack by these.
UNLIMITED = {resource: {"quota": "unlimited"} for resource in ("cpu", "memory")}
REST = {
    "cluster": {"name": "docs", "context": "docs"},
    "teams": {
        "ml": {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": "ml"},
            "gpus": 4,
            "queues": {name: {**UNLIMITED, "gpu": {"quota": 2}} for name in ("train", "serve")},
        }
    },
}
# Programs that are not among the sandbox's tools.
OTHERS = ("minikube", "kind", "docker", "git", "pip")
BIN = Path(sys.executable).parent
WITH_HELP = ("kubectl", "helm", "pulumi")
SHELL = ("cd", "cp", "curl", "eval", "export", "rm")


def words(text: str) -> list[list[str]]:
    """The commands of a line as a shell splits it, without comments and redirections."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>()")
    lexer.commenters, lexer.whitespace_split = "#", True
    found: list[list[str]] = [[]]
    skip = False
    for word in lexer:
        if skip:
            skip = False
        elif word in ("<", ">", ">>"):
            skip = True
        elif set(word) <= set("|&;"):
            found.append([])
        elif found[-1] or not re.match(r"[A-Z_]+=", word):  # SEED=4 make …
            found[-1].append(word)
    return [command for command in found if command]


def cases(*programs: str):
    """Every use of these programs: where it is, and its words."""
    found = [
        (str(found), command)
        for found in COMMANDS
        for command in words(found.text)
        if command[0] in programs
    ]
    ids = [f"{where} {' '.join(command)}"[:70] for where, command in found]
    return pytest.mark.parametrize(("where", "command"), found, ids=ids)


def test_every_command_is_of_a_program_that_is_looked_at_here():
    known = {"make", "fleet", ".venv/bin/fleet", "python", ".venv/bin/python"}
    known |= {*WITH_HELP, *SHELL, *OTHERS}
    strange = {
        f"{found}: {command[0]}"
        for found in COMMANDS
        for command in words(found.text)
        if command[0] not in known
    }
    assert strange == set()
    assert len(COMMANDS) > 30


def is_stack(name: str) -> bool:
    """A stack or an example with a file, or `prod-vision`: a part of one."""
    examples = (ROOT / "examples").rglob("Pulumi.*.yaml")
    # `mine` is the reader's own, whose file docs/start.md shows.
    there = {*reading.stacks(), *(path.name.split(".")[1] for path in examples), "…", "mine"}
    return name in there or any(name.startswith(f"{stack}-") for stack in there)


@cases("make")
def test_make_targets_and_stacks_exist(where, command):
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for word in command[1:]:
        name, equals, value = word.partition("=")
        if not equals:
            assert word in targets
        else:
            assert re.search(rf"^{name} \?=", makefile, re.MULTILINE)
            assert name != "STACK" or is_stack(value)


@cases(".venv/bin/fleet", "fleet")
def test_commands_of_this_project_parse(where, command):
    given = ["sandbox" if word == "…" else word for word in command[1:]]
    group = typer.main.get_command(app)
    while hasattr(group, "commands") and given:
        name, given = given[0], given[1:]
        assert name in group.commands, f"fleet has no command {name}"
        group = group.commands[name]
    # `fleet diff` in a sentence names the command; with arguments it has to be whole.
    context = group.make_context(group.name, given, resilient_parsing=not given)
    stack = context.params.get("stack")
    assert stack is None or is_stack(stack)


@functools.cache
def reported(program: str, *arguments: str) -> str:
    """What a tool prints; nothing where it fails."""
    ran = subprocess.run(
        [program, *arguments],
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},  # kubectl fleet
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout if ran.returncode == 0 else ""


@pytest.mark.engine
@cases(*WITH_HELP)
def test_flags_of_installed_tools_exist(where, command):
    program = str(toolbox.ensure([command[0]], print)[command[0]].path)
    flags = [
        word.partition("=")[0] for word in command[1:] if word.startswith("-") and word != "--"
    ]
    # `kubectl -n kai-scheduler get pods`: the verb is the first word that neither is a flag nor
    # belongs to one that stands in front.
    rest = list(command[1:])
    while rest and rest[0].startswith("-"):
        rest = rest[1:] if "=" in rest[0] else rest[2:]
    verbs = []
    for word in rest:
        if not re.fullmatch(r"[a-z][a-z-]+", word) or len(verbs) == 2:
            break
        verbs.append(word)
    helps = (reported(program, *verbs[:depth], "--help") for depth in range(len(verbs), 0, -1))
    help_text = next((text for text in helps if verbs[0] in text), "")
    assert help_text, f"{command[0]} has no command {' '.join(verbs)}"
    known = help_text + reported(program, "options")
    for flag in flags:
        assert re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", known), f"{where}: {flag}"


@pytest.mark.parametrize("block", markdown_pages.blocks("yaml"), ids=str)
def test_yaml_loads_and_stack_files_are_fine(block):
    document = yaml.safe_load(block.text)
    if not isinstance(document, dict) or "config" not in document:
        return
    given = parse(block.text, block.page)
    if "platform" in given:  # what the platform grants stands in another file
        assert model_and_mistakes(TeamStack, given)[1] == []
        return
    assert [str(problem) for problem in validation.validate({**REST, **given}).refused] == []


@pytest.mark.parametrize("block", markdown_pages.blocks("json"), ids=str)
def test_json_loads(block):
    assert json.loads(block.text)


def test_links_resolve():
    broken = [
        f"{found}: {found.text}"
        for found, path, heading in markdown_pages.links()
        if not path.exists() or (heading and heading not in markdown_pages.headings(path))
    ]
    assert broken == []


def test_every_page_of_the_docs_can_be_reached_from_readme():
    reached: set = set()
    following = [ROOT / "README.md"]
    while following:
        page = following.pop()
        if page.suffix == ".md" and page not in reached:
            reached.add(page)
            here = str(page.relative_to(ROOT))
            following += [path for found, path, _ in markdown_pages.links() if found.page == here]
    assert set((ROOT / "docs").rglob("*.md")) <= reached


def test_readme_shows_the_program_that_runs():
    shown = next(item for item in markdown_pages.blocks("python") if item.page == "README.md")
    lines = {line.strip() for line in (ROOT / "__main__.py").read_text().splitlines()}
    assert set(shown.text.splitlines()) <= lines


def test_files_that_pages_name_are_there():
    """But those of the changelog, which tells of what was."""
    folders = "kubectl|components|policies|stack|cli|sandbox|bench|tests|docs|examples"
    gone = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in markdown_pages.pages()
        if page.name != "CHANGELOG.md"
        for name in re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text())
        if not (ROOT / name).exists()
    ]
    assert gone == []
