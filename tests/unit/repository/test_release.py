"""What a release needs: notes of its version."""

import runpy

import pytest

from kai_fleet.provider import version
from kai_fleet_cli.stack_file.reading import ROOT

RELEASE = runpy.run_path(str(ROOT / ".github" / "release.py"))
OWN = f"v{version()}"
LOG = f"""\
# Changelog

## {version()} (2026-12-01)

New:

- more

## 0.1.0 (2026-01-01)

- old
"""


def test_the_notes_are_the_section_of_the_version():
    assert RELEASE["notes"](OWN, LOG) == "New:\n\n- more\n"


@pytest.mark.parametrize(
    ("tag", "log", "reported"),
    [
        ("v9.9.9", LOG, "the tag is v9.9.9"),
        (OWN, LOG.replace("(2026-12-01)", "(not released yet)"), "'not released yet'"),
        (OWN, "# Changelog\n", "has no section"),
    ],
)
def test_a_release_that_is_not_ready_is_stopped(tag, log, reported):
    with pytest.raises(SystemExit, match=reported):
        RELEASE["notes"](tag, log)
