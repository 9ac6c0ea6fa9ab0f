"""A field of a stack file and the argument that it becomes are described in one place."""

from typing import get_args

import pytest
from pydantic import BaseModel

from docs.field_texts import arguments, docstrings, own_text, text_of
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.models import Strict
from kai_fleet_stack.settings.sections.queues import Queue, Share
from kai_fleet_stack.settings.team_stack import TeamStack

# Fields with a text of their own beside an argument of the same name, which means something else.
OTHER_MEANING = {
    "chart": "has to be in kai-fleet:sources, and comes from kai-fleet:mirror by default",
    "gpu_sharing": "also says how GPUs are shared, which is gpu_sharing_mode of the arguments",
    "Isolation.volume_classes": "does not need that of kai-fleet:vcluster, which is added",
    "Scheduler.version": "is for one of three modes",
    "Scheduler.mode": "names a team's mode",
    "Vcluster.node_pool": "is control_pool of the arguments",
    "HostPlace.gpus": "may be by resource",
    "HostPlace.isolation": "is merged from the stack and the team",
    "HostPlace.labels": "is merged from the stack and the team",
    "HostPlace.annotations": "is merged from the stack and the team",
    "HostPlace.tolerations": "is the team's or the stack's",
    "Runs.scheduler": "has all of a team's scheduler",
    "Runs.queues": "has the queues of the team's own KAI",
    "Runs.registries": "is added to those of the stack",
}


def sections(hint):
    """The sections in a type, at any depth."""
    if isinstance(hint, type) and issubclass(hint, Strict) and "[" not in hint.__name__:
        yield hint
        if hint is not Queue:  # which has itself in it
            for field in hint.model_fields.values():
                yield from sections(field.annotation)
    for part in get_args(hint):
        yield from sections(part)


SECTIONS = [
    *dict.fromkeys(section for file in (Settings, TeamStack) for section in sections(file)),
    Share,
]
FIELDS = [(section, name) for section in SECTIONS for name in section.model_fields]


def names_of(section, name):
    """The names under which a field may be in a table: its own, and that of each section above."""
    owners = [kind for kind in section.__mro__ if issubclass(kind, BaseModel)]
    return {name, *(f"{owner.__name__}.{name}" for owner in owners)}


def test_every_field_is_described():
    assert [(section, name) for section, name in FIELDS if not text_of(section, name)] == []


def test_no_field_is_described_twice():
    twice = []
    for section, name in FIELDS:
        described = [kind for kind in arguments(section) if name in docstrings(kind)]
        if described and own_text(section, name) and not names_of(section, name) & {*OTHER_MEANING}:
            twice.append(f"{section.__name__}.{name}")
    assert twice == []


def test_no_text_stands_in_two_places():
    places = {}
    for section in SECTIONS:
        for kind in (section, *arguments(section)):
            for name, text in docstrings(kind).items():
                places.setdefault((name, text), set()).add(kind)
    assert [
        place for place, kinds in places.items() if kinds & {*SECTIONS} and len(kinds) > 1
    ] == []


@pytest.mark.parametrize("name", OTHER_MEANING)
def test_another_meaning_is_that_of_a_field(name):
    assert any(name in names_of(section, field) for section, field in FIELDS)


def test_a_default_is_the_same_in_the_settings_and_in_the_argument():
    compared = 0
    for section, name in FIELDS:
        default = section.model_fields[name].get_default()
        texts = [docstrings(kind).get(name, "") for kind in arguments(section)]
        if own_text(section, name) or type(default) not in (bool, int, float, str):
            continue
        written = next(filter(None, texts)).partition(" Default: ")[2].rstrip(".").strip("`")
        if written:  # an argument without a default is required
            number = int(default) if type(default) is float else default
            assert written.split(",")[0].lower() == str(number).lower(), (section, name)
            compared += 1
    assert compared > 20
