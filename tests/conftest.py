"""What all tests share: the facts about other projects' charts, where they are at hand."""

from pathlib import Path

import pytest

from sandbox import lifecycle, tools

FACTS = Path(__file__).resolve().parents[2] / "shared" / "facts"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Acquire the tools before the first test: a build must not count as a test's time."""
    if session.config.option.collectonly:
        return
    needing = ("engine", "faults")
    if any(item.get_closest_marker(name) for item in session.items for name in needing):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        try:
            tools.ensure(lifecycle.TOOLS, reporter.write_line if reporter else print)
        except tools.ToolError as why:
            raise pytest.UsageError(str(why)) from why


@pytest.fixture(scope="session")
def facts() -> Path:
    """Charts' values, CRDs and schemas by version; absent in a clone without them."""
    if not FACTS.is_dir():
        pytest.skip("the fact sheets about KAI's and vCluster's charts are not beside this clone")
    return FACTS
