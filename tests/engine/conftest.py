"""The sandbox of the engine tests: one of their own, taken down when they end."""

import os
from collections.abc import Iterator

import pytest

from sandbox import lifecycle


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lifecycle.Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAI_FLEET_SANDBOX", str(tmp_path_factory.mktemp("shared") / "sandbox"))
        try:
            yield lifecycle.up(print)
        finally:
            lifecycle.down(print)


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    """Opening a stack sets variables for the engine; other tests must not see them."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
