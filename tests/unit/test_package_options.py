"""The options of a component: as the engine hands them over, and what they reach."""

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
from google.protobuf.json_format import MessageToDict
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.resource import DependencyResource
from pulumi.runtime.proto import alias_pb2, provider_pb2
from pulumi.runtime.resource import prepare_aliases

from kai_fleet.package import pages
from kai_fleet_cli.plan import recorder
from tests.unit.event_loop import finish
from tests.unit.package_requests import constructed

TEAM = "urn:pulumi:lab::project::kai-fleet:index:Team"


class Noted(Provider):
    """Notes the options with which the SDK's server has a component declared."""

    def construct(self, name, resource_type, inputs, options=None):
        self.options = options
        return ConstructResult("urn", {})


async def options(**raw):
    noted = Noted("0.0.0")
    request = provider_pb2.ConstructRequest(**raw)
    await ProviderServicer(noted, [], "").Construct(request, None)
    return noted.options


def test_aliases_of_every_kind_come_to_the_engine_as_they_were_given():
    spec = alias_pb2.Alias.Spec
    given = [
        alias_pb2.Alias(urn=f"{TEAM}::old"),
        alias_pb2.Alias(spec=spec(name="old")),
        alias_pb2.Alias(spec=spec(name="old", type="a:b:C", parentUrn=f"{TEAM}::parent")),
        alias_pb2.Alias(spec=spec(stack="other", project="another", noParent=True)),
    ]

    async def sent():
        found = await options(aliases=given)
        return await prepare_aliases(None, found, supports_alias_specs=True)

    here = {"name": "old", "parentUrn": ""}  # the parent that it has now
    assert [MessageToDict(alias) for alias in finish(sent())] == [
        {"urn": f"{TEAM}::old"},
        {"spec": here},
        {"spec": {"name": "old", "type": "a:b:C", "parentUrn": f"{TEAM}::parent"}},
        {"spec": {"stack": "other", "project": "another", "noParent": True}},
    ]


def test_what_it_goes_with_and_what_it_waits_for():
    async def told():
        found = await options(
            deletedWith=f"{TEAM}::host", dependencies=[f"{TEAM}::a"], protect=True
        )
        urns = [await it.urn.future() for it in (found.deleted_with, *found.depends_on)]
        return [*urns, found.protect]

    assert finish(told()) == [f"{TEAM}::host", f"{TEAM}::a", True]

    async def without():
        found = await options()
        return found.deleted_with, found.aliases

    assert finish(without()) == (None, [])


PROVIDER = "pulumi:providers:"
SPACE = "urn:pulumi:lab::project::kubernetes:core/v1:Namespace::space"


@pytest.fixture
def registered(monkeypatch):
    """What is registered for a component of a page's example with these options."""
    requests, answer = [], recorder._Recorder.RegisterResource

    def note(self, request):
        requests.append(request)
        return answer(self, request)

    monkeypatch.setattr(recorder._Recorder, "RegisterResource", note)
    monkeypatch.setattr(recorder, "_noted", lambda options: options)  # all of them

    def made(kind, **more):
        def program():
            found = {k: it() if k == "providers" else it for k, it in more.items()}
            name, inputs = pages.EXAMPLES[kind]
            opts = pulumi.ResourceOptions(**found)
            constructed(kind, name, dict(inputs), opts)

        recorder.record("lab", {}, program=program)
        own = [it for it in requests if it.type != "pulumi:pulumi:Stack" and it.name != "host"]
        assert [it for it in own if it.custom]
        return own

    return made


@pytest.mark.parametrize("kind", pages.EXAMPLES)
def test_what_a_component_makes_is_protected_with_it(registered, kind):
    """A provider of its cluster is beside it: nothing is lost with that."""
    kept = [it for it in registered(kind, protect=True) if not it.type.startswith(PROVIDER)]
    assert [it.name for it in kept if not it.protect] == []


@pytest.mark.parametrize("kind", pages.EXAMPLES)
def test_what_a_component_makes_goes_with_what_the_component_does(registered, kind):
    """Whatever asks a cluster; what goes with something inside the component goes with both."""
    made = registered(kind, deleted_with=DependencyResource(SPACE))
    asks = [it for it in made if it.custom and not it.type.startswith(PROVIDER)]
    assert [it.name for it in asks if not it.deletedWith] == []
    assert SPACE in {it.deletedWith for it in asks}


@pytest.mark.parametrize("kind", pages.EXAMPLES)
def test_a_provider_is_used_for_what_is_on_its_cluster(registered, kind):
    made = registered(kind, providers=lambda: {"kubernetes": kubernetes.Provider("host")})
    inside = {it.name for it in made if it.type == "pulumi:providers:kubernetes"}
    assert inside <= {"ml"}  # of a vCluster, never another of the host
    used = {it.provider.split("::")[-2] for it in made if it.type.startswith("kubernetes:")}
    assert used <= {"host", *inside}
    assert "host" in used or kind == "QueueTree"  # which asks the API itself


@pytest.mark.parametrize("kind", pages.EXAMPLES)
def test_a_component_is_found_under_its_old_name(registered, kind):
    made = registered(kind, aliases=[pulumi.Alias(name="old")])
    (component,) = [
        it
        for it in made
        if it.type == f"kai-fleet:index:{kind}" and it.name == pages.EXAMPLES[kind][0]
    ]
    assert [alias.spec.name for alias in component.aliases] == ["old"]
