"""Reports of diffs, made from a plan that is kept in a file."""

import copy

from kai_fleet_cli.diff.changes import difference, summary_of_changes
from kai_fleet_cli.diff.report import Base, DiffReport
from kai_fleet_stack.settings.secrets import Ciphertext
from tests.unit.golden import compare as golden

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def report(now, base=None):
    there = golden.resources(golden.record()["resources"] if base is None else base["resources"])
    plan = golden.plan_of(now)
    changes = difference(there, plan.resources)
    found = Base("main", COMMIT, there)
    return DiffReport("lab", found, plan, changes=changes, summary=summary_of_changes(changes))


def reported(now, base=None, part=None):
    """The lines of a summary, or of one of its parts."""
    parts = report(now, base).summary
    items = parts[part] if part else [entry for items in parts.values() for entry in items]
    return [f"{entry.team}: {entry.subject} {entry.words}" for entry in items]


def sealed(key, ciphertext):
    return Ciphertext("Pulumi.lab.yaml", (key,), ciphertext)


def named(record, name):
    return next(item for item in record["resources"] if item["name"] == name)


def with_queue(record, tree, old, new):
    """The record with a queue of a tree under another name."""
    now = copy.deepcopy(record)
    queue = named(now, f"{tree}-{old}")
    queue["name"], queue["urn"] = f"{tree}-{new}", queue["urn"].replace(f"-{old}", f"-{new}")
    queue["inputs"]["metadata"]["name"] = new
    return now


def without(record, *teams):
    kept = [
        item
        for item in record["resources"]
        if not any(item["name"] == team or item["name"].startswith(f"{team}-") for team in teams)
    ]
    return {**record, "resources": kept}
