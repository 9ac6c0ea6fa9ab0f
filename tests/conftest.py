"""What all tests share: the facts about other projects' charts, where they are at hand."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench.temporary import temporary
from kai_fleet.cli.stack_file.schema import schema
from sandbox import lifecycle
from sandbox.tools import toolbox
from sandbox.tools.table import YAML_HOST

# The tools that the tests with a marker need.
NEEDED = {
    "engine": lifecycle.TOOLS,
    "faults": lifecycle.TOOLS,
    "prometheus": ("prometheus", "promtool"),
    "yaml": (YAML_HOST,),
}
FACTS = Path(__file__).resolve().parents[2] / "shared" / "facts"


# Where the environment forbids to keep compiled modules, each run would rewrite all tests anew, and
# each process that a test starts compile the product. They are in no commit: see .gitignore.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


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


@pytest.fixture(scope="session")
def facts() -> Path:
    """Charts' values, CRDs and schemas by version; absent in a clone without them."""
    if not FACTS.is_dir():
        pytest.skip("the fact sheets about KAI's and vCluster's charts are not beside this clone")
    return FACTS


@pytest.fixture(scope="session")
def editor() -> Callable[[Any], None]:
    """Checks a stack file's content against the schema as an editor does; made once, it is slow."""
    wanted = schema()
    kind = jsonschema.validators.validator_for(wanted)
    kind.check_schema(wanted)
    validator = kind(wanted)

    def check(document: Any) -> None:
        error = jsonschema.exceptions.best_match(validator.iter_errors(document))
        if error is not None:
            raise error

    return check
