"""Reports of diffs, made from a plan that is kept in a file."""

from kai_fleet.settings.secrets import Encrypted
from kai_fleet_cli.diff.base import Base, BaseState
from kai_fleet_cli.diff.report import DiffReport
from tests.unit.golden import compare as golden

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def report(now, base=None, *, state=BaseState.PLANNED, secrets=({}, {}), **more):
    there = golden.record()["resources"] if base is None else base
    resources = golden.resources(there)
    before, after = ([sealed(*it) for it in side.items()] for side in secrets)
    found = Base("main", COMMIT, state, resources, secrets=before, **more)
    return DiffReport("lab", found, golden.plan_of(now), after)


def sealed(key, ciphertext):
    return Encrypted("Pulumi.lab.yaml", (key,), "", ciphertext)


def named(record, name):
    return next(item for item in record["resources"] if item["name"] == name)


def without(record, *teams):
    kept = [
        item
        for item in record["resources"]
        if not any(item["name"] == team or item["name"].startswith(f"{team}-") for team in teams)
    ]
    return {**record, "resources": kept}


def said(now, base=None):
    return list(map(in_words, report(now, base).sentences))


def in_words(sentence):
    return f"{sentence.subject}: {sentence.text}"
