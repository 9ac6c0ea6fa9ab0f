"""The sentences that tests expect, in one file per table: `tests/texts/TABLE.yaml`.

A module names its table by `pytestmark = pytest.mark.texts("TABLE")`. A test asserts check, path
and level itself and gives what a user reads to the fixture `texts`, once. `make texts` writes the
files anew, so that another wording is one command and one diff to read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

WRITE: Final = "make texts"
_HEAD: Final = f"# What users read, by test module and test. Written by `{WRITE}`: read its diff.\n"
_OPTION: Final = "--write-texts"
_TABLES: Final = pytest.StashKey["Tables"]()
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Text = str | list[str]  # one line, or several
Texts = dict[str, dict[str, Text]]  # by module and test


@dataclass
class Table:
    """A file of texts."""

    file: Path
    stored: Texts
    given: Texts = field(default_factory=dict)
    stale: set[tuple[str, str]] = field(default_factory=set)
    modules: dict[str, Path] = field(default_factory=dict)
    collected: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of_file(cls, file: Path) -> "Table":
        """The table in a file; empty where there is none yet."""
        text = file.read_text() if file.exists() else ""
        return cls(file, yaml.load(text, Loader=_LOADER) or {})

    def collect(self, item: pytest.Item) -> None:
        """Note a test, and refuse a second module with the name, and so the keys, of another."""
        first = self.modules.setdefault(item.path.stem, item.path)
        if first != item.path:
            raise pytest.UsageError(f"{first} and {item.path} have one table; rename one of them")
        self.collected.add(key_of(item))

    def write(self) -> None:
        """Write what was given over what was stored, without what is stale."""
        modules = sorted({*self.stored, *self.given})
        merged = {
            module: {**self.stored.get(module, {}), **self.given.get(module, {})}
            for module in modules
        }
        for module, test in self.stale:
            del merged[module][test]
        left = {module: tests for module, tests in merged.items() if tests}
        self.file.parent.mkdir(exist_ok=True)
        dumped = yaml.safe_dump(left, allow_unicode=True, width=1_000_000)
        self.file.write_text(f"{_HEAD}{dumped}")


class Tables:
    """The tables of a run."""

    def __init__(self, tests: Path) -> None:
        self.tests = tests
        self._by_name: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        """The table with this name, read once."""
        if name not in self._by_name:
            self._by_name[name] = Table.of_file(self.tests / "texts" / f"{name}.yaml")
        return self._by_name[name]

    def used(self) -> Iterator[Table]:
        """The tables of the tests that were collected."""
        yield from self._by_name.values()

    def mark_stale(self, items: list[pytest.Item], arguments: list[str]) -> None:
        """Mark the texts of tests that no longer are.

        A module that was named with `::`, and so was collected in part, is not judged, nor is a
        module that was not collected and is there.
        """
        in_part = {Path(each.partition("::")[0]).stem for each in arguments if "::" in each}
        whole = {item.path.stem for item in items} - in_part
        for table in self.used():
            for module, tests in table.stored.items():
                if module in whole or not any(self.tests.rglob(f"{module}.py")):
                    gone = {(module, test) for test in tests} - table.collected
                    table.stale |= gone


class Stale(pytest.Item):
    """Fails for the texts of tests that no longer are."""

    table: Table

    def runtest(self) -> None:
        """Name them."""
        names = [f"{module}.py::{test}" for module, test in sorted(self.table.stale)]
        pytest.fail(f"no such test: {', '.join(names)}; run: {WRITE}", pytrace=False)


def key_of(item: pytest.Item) -> tuple[str, str]:
    """Module and test: where the module lies is no part of it."""
    return item.path.stem, item.name


def _has_texts(item: pytest.Item) -> bool:
    asked = "texts" in getattr(item, "fixturenames", ())
    return asked and item.get_closest_marker("texts") is not None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option that writes."""
    parser.addoption(_OPTION, action="store_true", help="write the files of texts anew")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; refuse several processes that write one file."""
    config.addinivalue_line("markers", "texts(table): its sentences are in tests/texts/TABLE.yaml")
    config.stash[_TABLES] = Tables(config.rootpath / "tests")
    if config.getoption(_OPTION) and getattr(config.option, "dist", "no") != "no":
        raise pytest.UsageError(f"{_OPTION} writes from one process; leave -n and --dist out")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Before `-k` and `-m` choose: find what is stale, and fail for it unless it is rewritten."""
    tables = config.stash[_TABLES]
    for item in items:
        if _has_texts(item):
            tables.table(_table_of(item)).collect(item)
    tables.mark_stale(items, config.args)
    if config.getoption(_OPTION):
        return
    for table in tables.used():
        if table.stale:
            stale = Stale.from_parent(session, name=f"texts-{table.file.stem}")
            stale.table = table
            items.append(stale)


def _table_of(item: Any) -> str:
    marker = item.get_closest_marker("texts")
    assert marker is not None, 'name the table: pytestmark = pytest.mark.texts("TABLE")'
    return str(marker.args[0])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the tables."""
    if session.config.getoption(_OPTION):
        for table in session.config.stash[_TABLES].used():
            table.write()


@pytest.fixture
def texts(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Hold what a user reads to the table: findings, mistakes, or texts with lines."""
    item = request.node
    table = request.config.stash[_TABLES].table(_table_of(item))
    module, test = key_of(item)
    given = table.given.setdefault(module, {})
    writing = request.config.getoption(_OPTION)

    def hold(*said: object) -> None:
        assert test not in given, "give all texts of a test at once"
        lines = [line for each in said for line in str(each).splitlines()]
        given[test] = lines[0] if len(lines) == 1 else lines
        expected = table.stored.get(module, {}).get(test)
        if expected is None and not writing:
            pytest.fail(f"{table.file.name} has no text of {module}.py::{test}; run: {WRITE}")
        assert writing or given[test] == expected, f"another text; if it is meant, run: {WRITE}"

    return hold


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that asks for `texts` gives some."""
    yield
    if _has_texts(item):
        module, test = key_of(item)
        table = item.config.stash[_TABLES].table(_table_of(item))
        assert test in table.given.get(module, {}), "this test asks for texts and gave none"
