"""Amounts of queues: unlimited in Python, in files and in a Queue's spec."""

import ast
from math import inf

import pytest

from kai_fleet.queues.amounts import (
    UNLIMITED,
    for_kai,
    from_kai,
    is_unlimited_in_spec,
    means_unlimited,
)
from kai_fleet_cli.stack_file.reading import ROOT


@pytest.mark.parametrize("amount", [0.0, 0.5, 4.0, UNLIMITED])
def test_an_amount_comes_back_from_a_spec(amount):
    assert from_kai(for_kai(amount)) == amount


def test_only_a_spec_has_minus_one():
    assert (for_kai(UNLIMITED), for_kai(3.0)) == (-1.0, 3.0)
    assert [from_kai(amount) for amount in (-1, -1.0, None, 2, "x")] == [inf, inf, None, 2, "x"]
    assert is_unlimited_in_spec(-1) and not is_unlimited_in_spec(inf)


@pytest.mark.parametrize("written", ["unlimited", -1, -1.0, "-1"])
def test_a_file_and_arguments_have_a_word_for_unlimited(written):
    assert means_unlimited(written)


@pytest.mark.parametrize("written", [None, 0, 1, "1", "-2", inf, True])
def test_other_amounts_are_not_unlimited(written):
    assert not means_unlimited(written)


def _is_minus_one(node):
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)):
            return True
    return False


def _amounts(file):
    """Lines with -1 that is no index and no argument of a call."""
    tree = ast.parse(file.read_text())
    indexes = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript | ast.Call):
            indexes.update(id(part) for part in ast.walk(node))
    return [
        node.lineno for node in ast.walk(tree) if _is_minus_one(node) and id(node) not in indexes
    ]


def test_minus_one_stands_in_one_file():
    folders = ("components", "policies", "stack")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    names = {file.name for file in files if _amounts(file)}
    assert names == {"amounts.py", "kubernetes.py"}  # the second: the schema of a stack file
