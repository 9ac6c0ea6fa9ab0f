"""What is generated from the code says what the code says."""

import json

import jsonschema
import pytest
import yaml

from docs import reference
from kai_fleet_cli.stack_file.reading import ROOT, path_of, stacks


@pytest.mark.parametrize("name", ["settings", "rules", "commands", "components"])
def test_a_page_is_up_to_date(name):
    written = (ROOT / "docs" / f"{name}.md").read_text()
    assert written == getattr(reference, f"{name}_page")(), "run: make reference"


def test_the_schema_is_up_to_date():
    assert json.loads(reference.FILE.read_text()) == reference.schema(), "run: make reference"


@pytest.mark.parametrize("stack", stacks())
def test_every_stack_file_points_at_it_and_fits(stack, editor):
    text = path_of(stack).read_text()
    assert text.startswith(
        "# yaml-language-server: $schema=stack/kai_fleet_stack/settings/stack.schema.json\n"
    )
    editor(yaml.safe_load(text))


def test_an_editor_sees_an_unknown_key(editor):
    document = yaml.safe_load(path_of("prod").read_text())
    document["config"]["kai-fleet:teams"]["ml"]["gpu"] = 3
    with pytest.raises(jsonschema.ValidationError, match="'gpu' was unexpected"):
        editor(document)


def test_an_editor_takes_secrets_as_pulumi_writes_them(editor):
    document = yaml.safe_load(path_of("prod").read_text())
    secret = {"secure": "v1:abc:def"}
    document["config"]["kai-fleet:cluster"] = {"name": "lab", "kubeconfig": secret}
    account = {"username": "robot", "password": secret}
    document["config"]["kai-fleet:registries"] = {"mirror.example.com": account}
    editor(document)
    account["password"] = {"secret": "v1:abc:def"}
    with pytest.raises(jsonschema.ValidationError):
        editor(document)
