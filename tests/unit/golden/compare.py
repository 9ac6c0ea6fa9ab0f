"""Comparing with a file of this folder; `KAI_FLEET_GOLDEN=write` writes it anew, to be read."""

import io
import json
import os
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

from kai_fleet_cli.plan.offline import Plan
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.finding import Finding, Level

HERE = Path(__file__).parent


def check(name, text):
    file = HERE / name
    if os.environ.get("KAI_FLEET_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


def record():
    """A plan's record, kept in a file: edits of the program do not change these tests."""
    return json.loads((HERE / "plan.json").read_text())


def resources(items):
    return tuple(Registered(**item) for item in items)


def problems(items):
    return tuple(Finding(**{**entry, "level": Level(entry["level"])}) for entry in items)


def plan_of(record):
    return Plan(
        record["stack"],
        resources(record["resources"]),
        problems(record["problems"]),
    )


def shown(show, what):
    """What a function prints where a line has 100 columns."""
    with redirect_stdout(io.StringIO()) as out, mock.patch.dict(os.environ, COLUMNS="100"):
        show(what)
    return out.getvalue()
