"""What a command knows of a stack from the state's file, in place of the engine's answer."""

import json
from types import SimpleNamespace

import pytest
from pulumi.runtime.sync_await import _sync_await

from components import focus, past
from components.past import COMMAND, RELEASE, STACK, Past, past_of, read_past
from fleet import neighbours, past_at_hand
from provider.marks import SECRET, SIGNATURE

LEAD = "urn:pulumi:lab::kai-fleet::"
HIDDEN = {SIGNATURE: SECRET, "ciphertext": "v1:x:y"}
OUTPUTS = {
    "teams": {"ml": {"gpus": 8}, "dev": {"gpus": 1}},
    "kubeconfigs": {"ml": HIDDEN, "dev": HIDDEN},
}


def resource(kind, name, outputs, **more):
    return {"urn": f"{LEAD}{kind}::{name}", "type": kind, "outputs": outputs, **more}


def state(outputs=OUTPUTS):
    return [
        resource(STACK, "kai-fleet-lab", outputs),
        resource("kai-fleet:index:Team", "ml", None),
        resource(RELEASE, "ml-release", {"version": "0.36.1", "__inputs": HIDDEN}),
        resource(COMMAND, "ml-ready", {"triggers": ["team-ml/ml", "1"], "environment": HIDDEN}),
    ]


@pytest.fixture
def stack(tmp_path):
    """One whose state is in a file, and that file."""
    file = tmp_path / ".pulumi/stacks/kai-fleet/lab.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"checkpoint": {"latest": {"resources": state()}}}))
    workspace = SimpleNamespace(env_vars={"PULUMI_BACKEND_URL": f"file://{tmp_path}"})
    return SimpleNamespace(name="lab", workspace=workspace), file


@pytest.fixture
def engine(monkeypatch):
    """What the engine says of the stack's outputs, after as many failures as are in the list."""
    failures = []

    async def say():
        if failures:
            raise failures.pop()
        return {"kubeconfigs": {"ml": "ml's", "dev": "dev's"}}

    async def at_once(_seconds):
        pass

    monkeypatch.setattr(past, "_own_outputs", say)
    monkeypatch.setattr(past.asyncio, "sleep", at_once)
    return failures


def told(resources):
    """The past, and its kubeconfigs once the engine has said them."""

    async def run():
        found = past_at_hand.past_at_hand(resources)
        coming = {} if found is None else found.outputs["kubeconfigs"]
        return found, {name: await each.future() for name, each in coming.items()}

    return _sync_await(run())


def test_it_is_what_the_engine_says(engine):
    found, kubeconfigs = told(state())
    asked = past_of((it["urn"], it["type"], it["outputs"] or {}) for it in state())
    assert (found.versions, found.triggers, found.urns) == (
        {"ml-release": "0.36.1"},
        {"ml-ready": ["team-ml/ml", "1"]},
        asked.urns,
    )
    assert found.outputs["teams"] == OUTPUTS["teams"]
    assert kubeconfigs == {"ml": "ml's", "dev": "dev's"}


def test_the_engine_is_asked_again_while_it_writes(engine):
    engine += [Exception("EOF"), Exception("EOF")]
    assert told(state())[1]["ml"] == "ml's"


def test_an_engine_that_never_says_it_ends_the_run(engine):
    engine += [Exception("EOF")] * 3
    with pytest.raises(Exception, match="EOF"):
        _sync_await(past.own_outputs())


@pytest.mark.parametrize("key", ["teams", "workloads"])
def test_what_is_a_secret_is_left_to_the_engine(engine, key):
    assert told(state({**OUTPUTS, key: {"ml": [HIDDEN]}}))[0] is None


def test_a_secret_trigger_is_left_to_the_engine(engine):
    secret = resource(COMMAND, "ml-ready", {"triggers": [HIDDEN]})
    assert told([*state(), secret])[0] is None


def test_what_is_on_its_way_out_is_no_past(engine):
    replaced = resource(RELEASE, "ml-release", {"version": "0.34.7"}, delete=True)
    assert told([*state(), replaced])[0].versions == {"ml-release": "0.36.1"}


@pytest.mark.parametrize("look", [neighbours.left_alone, neighbours.beside_the_leaving])
def test_a_run_takes_it_until_somebody_writes_the_state(engine, stack, look):
    opened, file = stack
    about = "ml" if look is neighbours.beside_the_leaving else ["ml"]

    async def run():
        alone = look(opened, about)
        with focus.only(alone.focus):
            known = read_past()
            for each in known.outputs["kubeconfigs"].values():
                await each.future()
            file.write_text(file.read_text() + " ")
            return known, focus.known_past()

    known, late = _sync_await(run())
    assert known.version("ml-release") == "0.36.1"
    assert late is None


def test_without_a_focus_the_engine_is_asked(monkeypatch):
    asked = []

    def invoke(_function, arguments):
        asked.append(arguments)
        return SimpleNamespace(value={"outputs": {}})

    monkeypatch.setattr(past, "invoke", invoke)
    assert read_past() == Past()
    assert len(asked) == 1
