"""README and docs walked as a new user does: every command of a page, in order, on a sandbox.

The pages speak of a stack `prod` on a cluster of the reader's. Here it is the sandbox's own stack.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kai_fleet_cli.stack_file.reading import ROOT
from tests.unit.repository import markdown_pages

pytestmark = [pytest.mark.engine, pytest.mark.slow]

BLOCK = re.compile(r"^( *)```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
README = "README.md"
UP = "make up"
SHELL = 'eval "$(.venv/bin/fleet sandbox env)"'  # kubectl, and the host's kubeconfig
# In the order in which a reader comes to them, each with what the page takes for granted.
WALKED = {
    README: (),
    "docs/start.md": (),
    "docs/teams.md": (UP, SHELL),
    "docs/blue-green.md": (UP, SHELL),
    "docs/doctor.md": (UP, "make up STACK=sandbox-vision", SHELL),
    "docs/ml-engineers.md": (
        UP,
        SHELL,
        ".venv/bin/fleet team kubeconfig ml --output ml.kubeconfig",
    ),
    "docs/report.md": (UP,),
    "docs/monitoring.md": (),
    "docs/pull-requests.md": (
        "git checkout --quiet -- .",  # a page before it edits the stack file
        "git switch --quiet --detach",
        "git branch --force main HEAD",
    ),
    "docs/isolation.md": (UP, SHELL),
    "docs/team-stacks.md": (UP, SHELL),
    "examples/guides/README.md": ("make down",),
}
NOT_WALKED = {
    "docs/compatibility.md": "wheels and a registry: test_wheel.py",
    "docs/faults.md": "tests/faults",
    "docs/local-gpu.md": "Docker",
    "docs/lost-state.md": "a state that is lost: test_lost_state.py",
    "docs/nodes.md": "nodes that are drained",
    "docs/people-who-leave.md": "test_people_who_leave.py",
    "docs/rules.md": "other people's programs: test_policy_pack.py",
    "docs/supply.md": "a registry with credentials: test_registries.py",
    "docs/workloads.md": "images that run",
    "examples/clusters/README.md": "clusters of clouds: tests/unit/repository/test_examples.py",
    "examples/other-program/README.md": "test_policy_pack.py",
}
# What a reader has in place of what the page shows.
TRANSLATED = (
    (r"git clone … kai-fleet", f"git clone --quiet {ROOT} kai-fleet"),
    (r"\bprod-vision\b", "sandbox-vision"),
    (r"\bprod\b(?!\.html)", "sandbox"),
    # A question that a terminal answers.
    (
        r"((?:fleet team (?:switch|rollback|remove|add)|fleet destroy|pulumi up) [^#]*?)"
        r"( +#|$)",
        r"\1 --yes\2",
    ),
    (r"--yes(.*) --yes", r"--yes\1"),
    (r"--context sandbox", "--context kai-fleet-sandbox"),
    (r"fleet init mine", "fleet init mine --context kai-fleet-sandbox"),
)
# Lines that only another machine can run.
ELSEWHERE = (
    "make test",  # what runs this
    "pulumi stack init ORGANIZATION/",
    "pip install ",
    "--oidc",  # an identity provider
    "# opens a browser",
    "kubectl create clusterrole",  # in the vCluster, by its administrator
    "kai-fleet:registries",  # the password of a registry that the file names
    "make preview STACK=mine",
    "make up STACK=mine",
    "kubectl label namespace team-ml",  # when the team is gone
)


def lines(page: str) -> Iterator[str]:
    """The commands of a page, a continued one as one."""
    for indent, block in BLOCK.findall((ROOT / page).read_text()):
        text = re.sub(f"^{indent}", "", block, flags=re.MULTILINE)
        for line in re.sub(r"\\\n\s*", "", text).splitlines():
            if line.strip() and not any(item in line for item in ELSEWHERE):
                for pattern, replacement in TRANSLATED:
                    line = re.sub(pattern, replacement, line)
                yield line


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The checkout of a new user, with a sandbox of its own: README.md makes both."""
    folder = tmp_path_factory.mktemp("reader") / "kai-fleet"
    yield folder
    if folder.exists():
        walk(folder, ["make down"])


def walk(folder: Path, commands: list[str]) -> None:
    """Type commands into one shell, until one fails."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PULUMI_", "KAI_FLEET_", "KUBECONFIG", "VIRTUAL_ENV"))
    }
    environment |= {
        "KAI_FLEET_SANDBOX": str(folder.parent / "sandbox"),
        "PATH": f"{folder}/.venv/bin:{environment['PATH']}",
        "PYTHON": sys.executable,
        "EMAIL": "reader@example.org",
    }
    ran = subprocess.run(
        ["bash", "-exc", "\n".join(commands)],
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd=folder if folder.exists() else folder.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,
    )
    assert ran.returncode == 0, ran.stdout[-6000:]


@pytest.mark.parametrize("page", WALKED)
def test_every_command_of_the_page_works(page, reader):
    commands = list(lines(page))
    assert commands
    if page != README and not reader.exists():
        walk(reader, [next(lines(README)), "make setup"])
    walk(reader, [*WALKED[page], *commands])


def test_every_page_with_commands_is_walked_or_has_a_reason():
    with_commands = {
        str(page.relative_to(ROOT))
        for page in markdown_pages.pages()
        if BLOCK.search(page.read_text())
    }
    assert with_commands == {*WALKED, *NOT_WALKED}
