"""Stack files are read fast, and not otherwise than before."""

import pytest
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from kai_fleet.settings.files import yaml_file

FINE = [
    "config: {kai-fleet:teams: {b: {gpus: 1}}}",
    "a: yes\nb: '0o17'\nc: 0\nd: 1000\ne: '2026-11-21'\nf: 0.5",
    "a: {<<: {b: 1}}",
    "",
]
WRONG = ["a: 1\na: 2", "a: b: c", "a: [1", "\ta: 1", "a: *x", "@a: 1", "a: 'b"]


@pytest.mark.parametrize("text", FINE)
def test_it_says_what_the_slow_way_says(text):
    assert yaml_file.load(text) == YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_as_well_as_the_slow_way_says_it(text):
    with pytest.raises(MarkedYAMLError) as quick:
        yaml_file.load(text)
    with pytest.raises(MarkedYAMLError) as slow:
        YAML(typ="safe", pure=True).load(text)
    assert quick.value.problem == slow.value.problem
    assert str(quick.value.problem_mark) == str(slow.value.problem_mark)
