"""What all tests share: how they are dealt out, a sandbox, the facts about others' charts."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from xdist.scheduler import LoadFileScheduling

from docs.reference import schema
from kai_fleet import releases
from sandbox import lifecycle
from sandbox.tools import toolbox
from sandbox.tools.table import YAML_HOST
from tests.temporary import temporary

pytest_plugins = ["tests.golden_texts"]

# The tools that the tests with a marker need.
NEEDED = {
    "engine": lifecycle.TOOL_NAMES,
    "faults": lifecycle.TOOL_NAMES,
    "prometheus": ("prometheus", "promtool"),
    "restic": ("restic",),
    "yaml": (YAML_HOST,),
}
# Of KAI's charts the keys of their defaults, and the CRD of queues, in which versions differ by
# descriptions only; of vCluster's the schema of values, without descriptions and defaults.
FACTS = Path(__file__).with_name("facts")
DAY = date(2026, 11, 24)  # of the texts in tests/texts


# Modules that use one stack, or one host: the worker that has one of them runs them all in a row.
TOGETHER = {
    "tests/engine/test_doctor.py": "one team",
    "tests/engine/test_doctor_repairs.py": "one team",
    "tests/engine/test_kubectl_fleet.py": "one team",
    "tests/engine/test_planted_kubeconfig.py": "one team",
    "tests/engine/test_walk.py": "one team",
    "tests/attacks/test_metadata.py": "attacks",
    "tests/attacks/test_nodes.py": "attacks",
    "tests/attacks/test_rights.py": "attacks",
    "tests/attacks/test_tenants.py": "attacks",
    "tests/faults/test_drift.py": "faults",
    "tests/faults/test_secrets.py": "faults",
}


# Where the environment forbids to keep compiled modules, each run would rewrite all tests anew, and
# each process that a test starts compile the product. They are in no commit: see .gitignore.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


class Together(LoadFileScheduling):
    """Modules go to workers by what they share."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together | None:
    """None leaves it to `--dist`."""
    return Together(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Acquire the tools before the first test: a build must not count as a test's time."""
    if session.config.option.collectonly:
        return
    needed = [
        tool
        for mark, tools in NEEDED.items()
        if any(item.get_closest_marker(mark) for item in session.items)
        for tool in tools
    ]
    if needed:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        try:
            toolbox.ensure(needed, reporter.write_line if reporter else print)
        except toolbox.ToolError as why:
            raise pytest.UsageError(str(why)) from why


@pytest.fixture(autouse=True)
def fixed_day(request: pytest.FixtureRequest) -> Iterator[None]:
    """Which version a sentence advises, and until when it is supported, depends on the day.

    With a patch of its own: a test's `monkeypatch` has to end before the fixtures of its module do.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("texts"):
            patch.setattr(releases, "date", SimpleNamespace(today=lambda: DAY))
        yield


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The sandbox that a worker's modules use one after another, taken down when they end."""
    from tests.engine.emptied import Emptied  # a second of imports, which unit tests are spared

    where = tmp_path_factory.mktemp("shared") / "sandbox"
    with pytest.MonkeyPatch.context() as patch, temporary(where):
        patch.setenv("KAI_FLEET_SANDBOX", str(where))
        yield Emptied(lifecycle.up(print))


@pytest.fixture(scope="session")
def facts() -> Path:
    """Charts' values, CRDs and schemas by version."""
    return FACTS


@pytest.fixture(scope="session")
def vcluster_schema() -> Callable[[str], Any]:
    """The validator of a version's chart values; made once for each, it is slow."""

    @cache
    def of(version: str) -> Any:
        text = (FACTS / "vcluster" / f"values.schema-{version}.json").read_text()
        schema = json.loads(text)
        return jsonschema.validators.validator_for(schema)(schema)

    return of


@pytest.fixture(scope="session")
def editor() -> Callable[[Any], None]:
    """Checks a stack file's content against the schema as an editor does; made once, it is slow."""
    desired = schema()
    kind = jsonschema.validators.validator_for(desired)
    kind.check_schema(desired)
    validator = kind(desired)

    def check(document: Any) -> None:
        error = jsonschema.exceptions.best_match(validator.iter_errors(document))
        if error is not None:
            raise error

    return check
