"""The sandbox of the engine tests: one of their own, taken down when they end."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.temporary import temporary
from sandbox import lifecycle
from tests.engine.bare_engine import Engine


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lifecycle.Sandbox]:
    where = tmp_path_factory.mktemp("shared") / "sandbox"
    with pytest.MonkeyPatch.context() as patch, temporary(where):
        patch.setenv("KAI_FLEET_SANDBOX", str(where))
        yield lifecycle.up(print)


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    """Opening a stack sets variables for the engine; other tests must not see them."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def engine(sandbox: lifecycle.Sandbox, tmp_path: Path) -> Iterator[Engine]:
    """One stack without the product's program, removed with what is in it."""
    found = Engine(sandbox, tmp_path)
    yield found
    found.destroy()
    found.stack.workspace.remove_stack(found.name)


@pytest.fixture
def unique() -> str:
    """A name that no other test uses."""
    return f"p{uuid.uuid4().hex[:8]}"
