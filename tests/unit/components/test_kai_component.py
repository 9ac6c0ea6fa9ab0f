"""How a KAI gets to another version, and what stays where it goes: options of its resources."""

import pytest
from pulumi.runtime import mocks

from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.names import COMMAND, KAI_SCHEDULER, RELEASE
from tests.unit.components.component_samples import KUBECONFIG, run_by

BELOW = f"urn:pulumi:lab::kai-fleet::{KAI_SCHEDULER}$"
INSIDE = {"probe_environment": {"PROBE_CONTEXT": "lab"}, "kubeconfig": KUBECONFIG}


def runs(version):
    """The state of a stack with a KAI of this version."""
    release = {"type": RELEASE, "outputs": {"version": version}}
    return {f"{BELOW}{RELEASE}::ml-kai-release": release}


class Engine(mocks.Mocks):
    def __init__(self, state):
        self.state = state

    def call(self, args):
        return {"outputs": self.state}

    def new_resource(self, args):
        return f"{args.name}-id", args.inputs


class Monitor(mocks.MockMonitor):
    """Notes each resource as the engine is asked for it."""

    def __init__(self, engine):
        super().__init__(engine)
        self.requests = {}

    def RegisterResource(self, request):  # noqa: N802 - the protocol's name
        self.requests[request.name] = request
        return super().RegisterResource(request)


def requests(args, state=()):
    engine = Engine(dict(state))
    monitor = Monitor(engine)
    run_by(engine, lambda: KaiScheduler("ml", args) and None, monitor=monitor)
    return monitor.requests


@pytest.mark.parametrize(
    ("before", "version", "replacing", "says"),
    [
        ("v0.16.7", "v0.16.8", [], "KAI is upgraded in place: v0.16.7 → v0.16.8"),
        ("v0.16.8", "v0.16.7", ["version"], "KAI is replaced: v0.16.8 → v0.16.7: helm cannot"),
        ("v0.5.0", "v0.16.8", ["version"], "v0.5.0 is not in the table"),
        (None, "v0.16.8", ["version"], ""),
        ("v0.16.8", "v0.16.8", ["version"], ""),
        (None, "v0.13.4", ["version", "values", "chart", "repositoryOpts"], ""),
    ],
)
def test_a_switch_goes_in_place_or_replaces_the_release(before, version, replacing, says, caplog):
    caplog.set_level("INFO")
    created = requests({"version": version}, runs(before) if before else {})
    release = created["ml-kai-release"]
    assert list(release.replaceOnChanges) == replacing
    assert release.deleteBeforeReplace, "two KAIs would own the same objects"
    assert ("KAI is" in caplog.text) == bool(says)
    assert says in caplog.text


def test_on_a_host_the_crd_outlives_kai_and_inside_it_does_not():
    assert requests({"version": "v0.9.3"})["ml-kai-cluster-policy"].retainOnDelete
    assert not requests({"version": "v0.9.3", **INSIDE})["ml-kai-cluster-policy"].retainOnDelete
    assert "ml-kai-cluster-policy" not in requests(
        {"version": "v0.9.3", "use_existing": ["clusterPolicyCrd"]}
    )


@pytest.mark.parametrize(("more", "taken_over"), [({}, False), (INSIDE, True)])
def test_objects_that_exist_are_taken_over_inside_only(more, taken_over):
    provider = requests({"version": "v0.9.3", "kubeconfig": KUBECONFIG, **more})["ml-kai"]
    assert ("upsertExistingObjects" in provider.object) is taken_over


def test_a_release_that_was_uninstalled_by_hand_is_waited_for_again():
    step = {"type": COMMAND, "outputs": {"triggers": ["ml-kai-release-id"], "stdout": ""}}
    gone = {f"{BELOW}{COMMAND}::ml-kai-ready": step}

    def triggers(state):
        wait = requests({"version": "v0.16.8"}, state)["ml-kai-ready"]
        return list(wait.object["triggers"])

    assert triggers({**gone, **runs("v0.16.8")}) == ["ml-kai-release-id"]
    assert triggers(gone) == ["ml-kai-release-id", "1"]


def test_no_tenant_keeps_a_removal_waiting_for_its_namespace():
    inside = requests({"version": "v0.16.8", **INSIDE})["ml-kai-namespace"]
    assert inside.customTimeouts.delete == "2m"


@pytest.mark.parametrize(
    ("more", "verified"),
    [
        ({}, None),
        ({"verify": False}, None),
        ({"verify": True}, "share"),
        ({"verify": True, "gpu_sharing": False}, "gang"),
    ],
)
def test_the_wait_places_pods_where_it_is_asked_for(more, verified):
    """Without it the variable is absent, so that no wait of an older state runs again."""
    wait = requests({"version": "v0.16.8", **more})["ml-kai-ready"]
    environment = dict(wait.object["environment"])
    assert environment.get("KAI_VERIFY") == verified
