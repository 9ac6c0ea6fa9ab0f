"""The offline plan against what the engine registers in a real preview of the same stack."""

import pytest

from kai_fleet.deployed import STACK
from kai_fleet.provider import QUEUES
from kai_fleet.provider.values import unpacked
from kai_fleet.quantities import parse_quantity
from kai_fleet_cli.engine import runs
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.recorder import SECRET, UNKNOWN
from kai_fleet_cli.stack_file import reading
from tests.engine.product import Product, project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def both(sandbox, tmp_path_factory):
    directory = project(tmp_path_factory.mktemp("plan") / "project")
    product = Product.of("sandbox", sandbox, directory)
    found = {}

    def note(event):
        step = event.resource_pre_event
        if step is not None and step.metadata.new is not None:
            found[step.metadata.urn] = step.metadata.new

    product.stack.preview(on_event=note, policy_packs=[runs.POLICY_PACK])
    planned = recorder.record("sandbox", reading.read(product.file))
    return {item.urn: item for item in planned}, found


def test_the_same_resources(both):
    planned, registered = both
    # Default providers are the engine's own, made for what names none.
    real = {
        urn for urn, state in registered.items() if state.type != STACK and "::default" not in urn
    }
    assert set(planned) == real


def test_the_same_inputs(both):
    planned, registered = both
    compared = 0
    for urn, item in planned.items():
        if urn not in registered or not registered[urn].custom:
            continue
        inputs = dict(registered[urn].inputs)
        if item.type == QUEUES:
            inputs["queues"] = unpacked(inputs["queues"])
        for path, value in _leaves(item.inputs):
            # `compat` is a mark of the SDK for its provider, which takes it out.
            if value in (SECRET, UNKNOWN) or path == ("compat",):
                continue
            real = inputs
            for key in path:
                real = real[key]
            # Pulumi's plugin writes quantities in Kubernetes' shortest form: 5k for 5000.
            if path[:2] == ("spec", "hard"):
                real, value = parse_quantity(real), parse_quantity(value)
            assert real == value, f"{urn} {path}"
            compared += 1
    assert compared > 300


def _leaves(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, index))
    else:
        yield path, value
