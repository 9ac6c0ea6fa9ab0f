"""Programs in YAML, in the examples and on the pages, against the schema."""

import pytest
import yaml

from kai_fleet.package import pages
from kai_fleet.package.arguments import ARGUMENTS
from kai_fleet_cli.stack_file.reading import ROOT
from tests.languages.checked import mistakes

PROGRAMS = sorted((ROOT / "examples").rglob("Pulumi.yaml"))
YAML = [path for path in PROGRAMS if yaml.safe_load(path.read_text())["runtime"] == "yaml"]


def resources(document):
    return {name: it for name, it in document["resources"].items() if it["type"].startswith("kai-")}


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.parent.name)
def test_a_program_in_yaml_is_right(path):
    found = resources(yaml.safe_load(path.read_text()))
    assert found
    for it in found.values():
        assert mistakes(it["type"].rpartition(":")[2], it["properties"]) == []


def test_the_check_finds_what_is_wrong():
    given = {
        "cluster": {"name": "lab"},
        "scheduler": {"mode": "virtuall"},
        "gpus": "two",
        "queues": {"a": {"children": {"b": {"gpu": {"qouta": 1}}}}},
    }
    assert mistakes("Team", given) == [
        "scheduler.mode is 'virtuall'",
        "gpus is 'two', and no integer",
        "queues.a.children.b.gpu.qouta is no property",
    ]
    assert mistakes("QueueTree", {"cluster": {"name": "lab"}}) == ["queues is missing"]


def test_the_pages_are_up_to_date():
    folder = ROOT / "docs" / "api"
    assert {path.name: path.read_text() for path in folder.iterdir()} == pages.pages(), (
        "run: make reference"
    )


@pytest.mark.parametrize("component", ARGUMENTS)
def test_the_example_of_a_page_is_right(component):
    _, inputs = pages.EXAMPLES[component]
    assert mistakes(component, inputs) == []
    ARGUMENTS[component].model_validate(inputs)


@pytest.mark.parametrize("component", ARGUMENTS)
def test_the_example_in_python_is_the_one_in_yaml(component):
    """Both are read again: Python's by Python, with the names of its SDK."""
    name, inputs = pages.EXAMPLES[component]
    given = {}

    class Sdk:
        def __getattr__(self, kind):
            return lambda *args, **more: given.update(kind=kind, name=args[0], inputs=more)

    class Config:
        def require_secret(self, name):
            return "${" + name + "}"

    text = pages.example_of(component)
    exec(text["Python"], {"fleet": Sdk(), "config": Config()})
    assert (given["kind"], given["name"]) == (component, name)
    assert given["inputs"] == pages.in_python(component, inputs)
    (resource,) = yaml.safe_load(text["YAML"]).values()
    assert resource == {"type": f"kai-fleet:{component}", "properties": inputs}
