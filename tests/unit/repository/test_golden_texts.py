"""`texts`: what a test reads is in its table's file, written by a command and else compared."""

import pytest
import yaml

from kai_fleet_cli.stack_file.reading import ROOT

pytest_plugins = ["pytester"]

MODULE = """
import pytest
pytestmark = pytest.mark.texts("rules")

@pytest.mark.parametrize("case", ["a", "b"])
def test_rule(texts, case):
    texts(f"{case}: write 1", "and 2")
"""


@pytest.fixture
def run(pytester):
    """Run a module with these tests in a project of its own."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nxfail_strict = true\n")
    folder = pytester.mkdir("tests")

    def run(*options, module=MODULE):
        (folder / "test_it.py").write_text(module)
        ran = pytester.runpytest_inprocess("-p", "tests.golden_texts", *options)
        return ran, "\n".join([*ran.outlines, *ran.errlines])

    run.file = folder / "texts/rules.yaml"
    return run


def stored(run):
    return yaml.safe_load(run.file.read_text())


def test_texts_written_are_compared(run):
    assert run("--write-texts")[0].ret == 0
    lines = {f"test_rule[{case}]": [f"{case}: write 1", "and 2"] for case in "ab"}
    assert stored(run) == {"test_it": lines}
    assert run()[0].ret == 0


def test_texts_another_word_fails_with_both_and_the_command(run):
    run("--write-texts")
    ran, said = run(module=MODULE.replace("write 1", "say 1"))
    ran.assert_outcomes(failed=2)
    assert "a: say 1" in said and "a: write 1" in said and "make texts" in said


def test_texts_missing_fails_with_the_command(run):
    ran, said = run()
    ran.assert_outcomes(failed=2)
    assert "rules.yaml has no text of test_it.py::test_rule[a]; run: make texts" in said


@pytest.mark.parametrize("name", ["test_it", "test_gone"])
def test_texts_stale_fails_a_whole_run_and_is_dropped(run, name):
    run("--write-texts")
    right = stored(run)
    wrong = {**right, name: {**right.get(name, {}), "test_old": ["x"]}}
    run.file.write_text(yaml.safe_dump(wrong))
    ran, said = run()
    ran.assert_outcomes(passed=2, failed=1)
    assert f"no such test: {name}.py::test_old; run: make texts" in said
    run("--write-texts")
    assert stored(run) == right


def test_texts_of_a_part_are_written_beside_the_others(run):
    run("--write-texts")
    right = stored(run)
    one = "tests/test_it.py::test_rule[a]"
    assert run(one)[0].ret == 0
    assert run("--write-texts", one, module=MODULE.replace("write", "say"))[0].ret == 0
    right["test_it"]["test_rule[a]"][0] = "a: say 1"
    assert stored(run) == right


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("pass", "asks for texts and gave none"),
        ("texts('a'); texts('b')", "give all texts of a test at once"),
    ],
)
def test_texts_given_never_or_twice_fails(run, body, says):
    module = MODULE.replace('texts(f"{case}: write 1", "and 2")', body)
    ran, said = run("--write-texts", module=module)
    ran.assert_outcomes(failed=2)
    assert says in said


def test_texts_are_not_written_by_several_processes(run):
    ran, said = run("--write-texts", "-n", "2")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    assert "--write-texts writes from one process" in said
    assert not run.file.exists()


def test_texts_of_two_modules_with_one_name_are_refused(run):
    other = run.file.parents[1] / "more"
    other.mkdir()
    (other / "test_it.py").write_text(MODULE)
    ran, said = run("--import-mode=importlib")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    assert "have one table; rename one of them" in said


def test_texts_each_file_is_a_modules_table():
    modules = [file.read_text() for file in (ROOT / "tests").rglob("test_*.py")]
    for file in (ROOT / "tests/texts").iterdir():
        assert any(f'pytest.mark.texts("{file.stem}")' in text for text in modules), file
