"""What a release needs: notes of its version, and no patch that breaks a program."""

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
    ("tag", "log", "said"),
    [
        ("v9.9.9", LOG, "the tag is v9.9.9"),
        (OWN, LOG.replace("(2026-12-01)", "(not released yet)"), "'not released yet'"),
        (OWN, "# Changelog\n", "has no section"),
    ],
)
def test_a_release_that_is_not_ready_is_stopped(tag, log, said):
    with pytest.raises(SystemExit, match=said):
        RELEASE["notes"](tag, log)


def test_the_release_before_is_by_version_and_not_by_name():
    tags = ["v0.9.0", "v0.10.0", "v0.10.1", "other", "v0.2.0-rc.1"]
    assert RELEASE["before"]("v0.10.1", tags) == "v0.10.0"
    assert RELEASE["before"]("v0.9.0", tags) is None


def test_the_first_schema_has_nothing_before_it(monkeypatch):
    monkeypatch.setitem(RELEASE["schema"].__globals__, "_git", lambda *words: "")
    assert RELEASE["schema"](OWN) == "no release before had a schema"


def test_what_breaks_programs_needs_the_version_for_it(monkeypatch):
    old = {"resources": {"kai-fleet:index:Gone": {}}, "types": {}}
    path = "components/kai_fleet/package/schema.json"

    def git(*words):
        import json

        return {"tag": "v0.3.0\nv1.0.0", "ls-tree": path, "show": json.dumps(old)}[words[0]]

    names = RELEASE["schema"].__globals__
    monkeypatch.setitem(names, "_git", git)
    with pytest.raises(SystemExit, match=r"v0.3.1 is a patch .*\ncomponent Gone is gone"):
        RELEASE["schema"]("v0.3.1")
    with pytest.raises(SystemExit, match=r"v1.1.0 is a minor release and breaks programs for v1"):
        RELEASE["schema"]("v1.1.0")
    for fine in ("v0.4.0", "v1.0.0", "v2.0.0"):
        assert "component Gone is gone" in RELEASE["schema"](fine)
