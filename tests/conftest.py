"""What all tests share: the facts about other projects' charts, where they are at hand."""

from pathlib import Path

import pytest

FACTS = Path(__file__).resolve().parents[2] / "shared" / "facts"


@pytest.fixture(scope="session")
def facts() -> Path:
    """Charts' values, CRDs and schemas by version; absent in a clone without them."""
    if not FACTS.is_dir():
        pytest.skip("the fact sheets about KAI's and vCluster's charts are not beside this clone")
    return FACTS
