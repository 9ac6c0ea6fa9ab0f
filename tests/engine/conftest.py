"""The sandbox of the engine tests, empty or with the stack that modules share."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from kai_fleet_cli.stack_file import reading
from kai_fleet_stack import validation
from sandbox import lifecycle
from tests.engine.bare_engine import Engine
from tests.engine.emptied import Emptied
from tests.engine.one_team import OneTeam
from tests.engine.product import Product, api


@pytest.fixture(scope="module")
def sandbox(place: Emptied) -> Iterator[lifecycle.Sandbox]:
    """The sandbox, with nothing on it of the modules before.

    So a module need not destroy its stack, where it says nothing about that.
    """
    place.empty()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAI_FLEET_SANDBOX", str(place.sandbox.directory))
        yield place.sandbox


@pytest.fixture(scope="module")
def one_team(place: Emptied, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneTeam]:
    """The stack of `one_team.py`: of the module before, if that used it last, else a new one.

    A test puts back what it changes there. One that cannot has `place.tenant = None`.
    """
    if not isinstance(place.tenant, OneTeam):
        place.empty()
        folder = tmp_path_factory.mktemp("one-team") / "project"
        place.tenant = OneTeam.make(place.sandbox, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAI_FLEET_SANDBOX", str(place.sandbox.directory))
        yield place.tenant


@pytest.fixture(scope="module")
def product(one_team: OneTeam) -> Iterator[Product]:
    """The program of `one_team`, for modules that have the doctor read its checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "ROOT", one_team.folder)
        yield one_team.product


@pytest.fixture(scope="module")
def ml(product: Product, one_team: OneTeam) -> client.ApiClient:
    """The vCluster of `one_team`."""
    return one_team.inside()


@pytest.fixture(scope="module")
def host(place: Emptied) -> client.ApiClient:
    """The cluster that vClusters are on."""
    return api(place.sandbox.kubeconfig.read_text())


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    """Opening a stack sets variables for the engine; other tests must not see them."""
    before, root = dict(os.environ), validation.ROOT
    yield
    validation.ROOT = root
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
