"""The way into a vCluster: its address, its identity, its kubeconfig, and where there is none."""

import json

import pulumi
import pytest
import yaml
from pulumi.runtime import mocks

from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.names import COMMAND, RELEASE, SECRET, VIRTUAL_CLUSTER
from kai_fleet.vcluster.virtual_cluster import VirtualCluster
from kai_fleet_stack.dead_kubeconfigs import warn_of_dead
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.component_samples import run_by

PRINTED = {"server": "https://1.2.3.4:443", "uid": "0d9f"}
ABSENT = {"problem": "is not there"}
PATH = f"urn:pulumi:lab::kai-fleet::{VIRTUAL_CLUSTER}$"


def waited(number="0", version="0.36.1"):
    """The state of a stack that runs the vCluster."""
    release = {f"{PATH}{RELEASE}::ml-release": {"type": RELEASE, "outputs": {"version": version}}}
    ready = {"triggers": ["ml-release-id", number], "stdout": json.dumps(PRINTED)}
    step = {f"{PATH}{COMMAND}::ml-ready": {"type": COMMAND, "outputs": ready}}
    return {**(release if version else {}), **step}


class Engine(mocks.Mocks):
    """An engine in which each step works, and a host with one Secret."""

    def __init__(self, secret, state=None):
        self.secret, self.state, self.inputs = secret, state or {}, {}

    def call(self, args):
        return self.secret if args.token == SECRET else {"outputs": self.state}

    def new_resource(self, args):
        self.inputs[args.name, args.typ.rpartition(":")[2]] = args.inputs
        printed = {"stdout": json.dumps(PRINTED)} if args.typ == COMMAND else {}
        return f"{args.name}-id", {**args.inputs, **printed}


class Found:
    """What an update or a preview of one vCluster declares, and its outputs."""

    def __init__(self, secret, state=None, preview=False, **args):
        self.engine = Engine(secret, state)

        def program():
            created = VirtualCluster("ml", {"node_pool": {"pool": "ml"}, **args})
            return self.read(created)

        run_by(self.engine, program, preview=preview)

    async def read(self, created):
        self.server = await created.server.future()
        self.cluster = await created.cluster.future()
        self.kubeconfig = await created.kubeconfig.future()
        self.is_secret = await created.kubeconfig.is_secret()

    @property
    def number(self):
        return self.engine.inputs["ml-ready", "Command"]["triggers"][1]


def good():
    return {"data": vcluster_secrets.data()}


def test_the_wait_prints_where_and_which_it_is():
    found = Found(good())
    assert found.server == "https://1.2.3.4:443"
    assert found.cluster == "0d9f"
    assert found.engine.inputs["ml-identity", "Command"]["triggers"] == ["0d9f"]


def test_the_kubeconfig_is_built_for_that_server_and_is_a_secret():
    found = Found(good())
    document = yaml.safe_load(found.kubeconfig)
    assert document["clusters"][0]["cluster"]["server"] == "https://1.2.3.4:443"
    assert document["current-context"] == "team-ml-ml"
    assert found.is_secret


def test_no_value_of_the_chart_names_its_context():
    """The name could be that of the platform's own context, in a file that is merged."""
    found = Found(good(), values={"exportKubeConfig": {"context": "prod"}}, isolation="off")
    assert yaml.safe_load(found.kubeconfig)["current-context"] == "team-ml-ml"


def test_a_wait_that_was_is_not_run_again():
    assert Found(good()).number == "0"
    assert Found(good(), waited("3")).number == "3"


def test_a_release_that_was_uninstalled_by_hand_is_waited_for_again():
    assert Found(good(), waited("3", version=None)).number == "4"


@pytest.mark.parametrize(
    ("answers", "number"),
    [
        ({"server": "https://1.2.3.4:444"}, "4"),
        ({"server": "https://1.2.3.4:443"}, "3"),
        ({"server": "https://1.2.3.4:444", "cluster": "0d9f"}, "3"),
        ({}, "3"),
    ],
    ids=["moved", "away", "answers where it was", "not read"],
)
def test_one_whose_service_was_made_again_is_waited_for_at_its_new_address(answers, number):
    assert Found({**good(), **answers}, waited("3")).number == number


def planted():
    document = vcluster_secrets.config()
    document["users"][0]["user"]["tokenFile"] = "/etc/hostname"
    return {"data": vcluster_secrets.data(document)}


@pytest.mark.parametrize("secret", [ABSENT, planted()], ids=["absent", "planted"])
def test_a_preview_without_a_way_in_says_so_and_goes_on(secret, caplog):
    # Other vClusters of the stack are updated: the wait of this one runs, and fails.
    found = Found(secret, waited("3"), preview=True)
    assert found.number == "4"
    assert found.kubeconfig is None, "not known before the update"
    assert found.cluster == "0d9f", "what is inside is not replaced"
    assert "Secret vc-ml" in caplog.text


@pytest.mark.parametrize("secret", [ABSENT, planted()], ids=["absent", "planted"])
def test_an_update_that_loses_its_way_in_does_not_end_those_of_others(secret, caplog):
    found = Found(secret)
    assert found.kubeconfig.startswith("# Secret vc-ml of namespace team-ml"), "no program's way in"
    assert yaml.safe_load(found.kubeconfig) is None
    assert found.is_secret
    assert "Secret vc-ml" in caplog.text


def kubeconfig(server="https://1.2.3.4:443", of="ml"):
    data = vcluster_secrets.data(of=vcluster_secrets.keys(of))
    return tenant_kubeconfig.kubeconfig_of_secret(data, server, "ml")


def warned(caplog, last, now, preview=False):
    """Whether an update warns that copies of the last kubeconfig are dead."""

    def program():
        component = pulumi.ComponentResource("test:index:It", "it")
        warn_of_dead("ml", last, pulumi.Output.secret(now), component)

    caplog.clear()
    run_by(Engine(good()), program, preview=preview)
    return "the kubeconfigs that people have of vCluster ml are dead" in caplog.text


def test_who_has_a_kubeconfig_that_works_no_more_is_told_how_to_write_new_ones(caplog):
    assert warned(caplog, kubeconfig(), kubeconfig("https://1.2.3.4:30007"))
    assert "its API is at https://1.2.3.4:30007 now, and was at https://1.2.3.4:443" in caplog.text
    command = ".venv/bin/fleet team kubeconfig ml --stack lab --output ml.kubeconfig"
    assert f"Write new ones, and hand them out: {command}" in caplog.text
    assert "client-key" not in caplog.text
    assert warned(caplog, kubeconfig(), kubeconfig(of="nlp"))
    assert "its certificate authority is another one" in caplog.text


def with_cluster_fields(**more):
    document = yaml.safe_load(kubeconfig())
    document["clusters"][0]["cluster"] |= more
    return yaml.safe_dump(document)


@pytest.mark.parametrize(
    "more", [{"tls-server-name": "ml.example.com"}, {"proxy-url": "http://proxy.example.com"}]
)
def test_a_kubeconfig_of_the_same_server_and_authority_is_not_dead(caplog, more):
    assert not warned(caplog, with_cluster_fields(**more), kubeconfig())


@pytest.mark.parametrize("last", [None, "", "# no Secret", kubeconfig()])
@pytest.mark.parametrize("now", ["# Secret vc-ml is not there", kubeconfig()])
def test_a_kubeconfig_that_still_works_or_never_did_is_no_warning(caplog, last, now):
    assert not warned(caplog, last, now)


def test_a_preview_knows_no_new_address(caplog):
    assert not warned(caplog, kubeconfig(), kubeconfig("https://1.2.3.4:30007"), preview=True)


def test_an_api_server_that_never_answers_is_not_waited_for():
    settings = json.loads(Found(good()).engine.inputs["ml", "kubernetes"]["kubeClientSettings"])
    assert settings == {"timeout": 15}
