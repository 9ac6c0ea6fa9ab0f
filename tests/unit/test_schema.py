import json

import jsonschema
import pytest
import yaml

from fleet.schema import FILE, schema
from fleet.stack_file import path_of, stacks


def test_the_file_that_the_stack_files_point_at_is_up_to_date():
    assert json.loads(FILE.read_text()) == schema(), "run: make schema"


@pytest.mark.parametrize("stack", stacks())
def test_every_stack_file_points_at_it_and_fits(stack, editor):
    text = path_of(stack).read_text()
    assert text.startswith("# yaml-language-server: $schema=fleet/stack.schema.json\n")
    editor(yaml.safe_load(text))


def test_an_editor_sees_an_unknown_key(editor):
    document = yaml.safe_load(path_of("prod").read_text())
    document["config"]["kai-fleet:teams"]["ml"]["gpu"] = 3
    with pytest.raises(jsonschema.ValidationError, match="'gpu' was unexpected"):
        editor(document)
