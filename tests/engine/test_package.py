"""The package's components under the engine, asked for as by a program of any language."""

import json
import os
import re

import pulumi
import pulumi_command as command
import pulumi_kubernetes as kubernetes
import pytest
from kubernetes import client
from pulumi import automation

from kai_fleet.package import served_schema
from tests.engine.bare_engine import Engine, changed
from tests.engine.product import api, deployments, namespaces, queues
from tests.engine.remote import PLUGIN, Remote

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

TREE = {"ml": {"children": {"train": {"gpu": {"quota": 1}}, "serve": {"gpu": {"quota": 1}}}}}


@pytest.fixture
def own(sandbox, tmp_path, monkeypatch):
    """A stack of a project that is not kai-fleet's, with the plugin on PATH."""
    monkeypatch.setenv("PATH", f"{PLUGIN}{os.pathsep}{os.environ['PATH']}")
    found = Engine(sandbox, tmp_path)
    yield found
    found.destroy()
    found.stack.workspace.remove_stack(found.name)


@pytest.fixture
def host(sandbox):
    return {"name": "lab", "kubeconfig": sandbox.kubeconfig.read_text()}


def team(host, **more):
    return {
        "cluster": {"name": host["name"], "kubeconfig": pulumi.Output.secret(host["kubeconfig"])},
        "scheduler": {"mode": "virtual", "version": "v0.12.23"},
        "nodePool": {"kai-fleet/pool": "ml"},
        "gpus": 2,
        "queues": TREE,
        "vcluster": {"access": {"type": "NodePort", "host": "127.0.0.1"}},
        **more,
    }


def test_a_team_is_made_switched_and_removed(own, host, sandbox):
    def program(version: str = "v0.12.23") -> None:
        made = Remote("Team", "ml", team(host, scheduler={"mode": "virtual", "version": version}))
        for name in ("namespace", "server", "kubeconfig", "queues", "version"):
            pulumi.export(name, made.output(name))

    own.preview(program)
    assert re.search(r"server +: \[unknown\]", own.printed)
    own.up(program)
    outputs = own.stack.outputs()
    assert outputs["kubeconfig"].secret
    told = {name: it.value for name, it in outputs.items()}
    assert told["namespace"] == "team-ml"
    assert set(told["queues"]) == {"train", "serve"}
    inside = api(told["kubeconfig"])
    assert set(queues(inside)) == {"ml", "train", "serve"}
    assert told["kubeconfig"] not in own.state()
    assert changed(own.up(program)) == {}

    own.up(lambda: program("v0.16.8"))
    assert own.stack.outputs()["version"].value == "v0.16.8"
    assert "kai-scheduler-default" in deployments(api(told["kubeconfig"]), "kai-scheduler")
    assert "upgraded in place" in own.printed
    own.up(lambda: None)
    assert "team-ml" not in namespaces(api(sandbox.kubeconfig.read_text()))


def test_a_mistake_is_told_at_the_input_and_nothing_is_made(own, host):
    wrong = {"scheduler": {"mode": "virtuall"}, "gpus": "2", "quees": {}}
    printed = own.fails(lambda: Remote("Team", "ml", team(host, **wrong)))
    for line in (
        "Team ml has 3 mistakes:",
        "scheduler.mode: is 'virtuall'; write one of 'virtual', 'host' or 'default'",
        "gpus: ",
        "quees: ",
    ):
        assert line in printed
    assert "Traceback" not in printed.partition("error: python inline")[0]


def test_what_decides_what_is_made_has_to_be_known(own, host):
    def program() -> None:
        later = command.local.Command("later", create="echo ml")
        Remote("Team", "ml", team(host, nodePool={"kai-fleet/pool": later.stdout}))

    with pytest.raises(automation.CommandError) as caught:
        own.preview(program)
    assert "nodePool.kai-fleet/pool: is not known before the update" in str(caught.value)


def test_what_may_be_known_later_is_previewed(own, host):
    """A kubeconfig, a namespace, an image: the preview shows what will be made."""

    def program() -> None:
        later = command.local.Command("later", create="echo space")
        cluster = {"name": "later", "kubeconfig": later.stdout}
        inputs = {"cluster": cluster, "namespace": later.stdout, "image": later.stdout}
        made = Remote("GpuPod", "one", {**inputs, "readySeconds": 0})
        pulumi.export("namespace", made.output("namespace"))

    assert own.preview(program) == {"create": 5}
    assert re.search(r"namespace *: \[unknown\]", own.printed)


def own_pod(host, namespace):
    core = client.CoreV1Api(api(host["kubeconfig"]))
    return core.read_namespaced_pod("one", namespace)


def test_the_cli_gets_the_whole_schema(own):
    """As SDKs are written from it: what the CLI does not know of a schema, it leaves out."""

    def said(value):
        if not isinstance(value, dict):
            return value
        return {key: said(it) for key, it in value.items() if it not in ({}, [], False)}

    found = json.loads(
        own.tool("pulumi", "package", "get-schema", str(PLUGIN / "pulumi-resource-kai-fleet"))
    )
    assert said({key: found[key] for key in served_schema()}) == said(served_schema())


class Declared:
    """What the engine knows of a stack: resources by type and name."""

    def __init__(self, own):
        found = json.loads(own.state())["deployment"]["resources"]
        self.by_name = {
            (it["type"].rpartition(":")[2], it["urn"].rpartition("::")[2]): it for it in found
        }

    def __getitem__(self, key):
        return self.by_name[key]


@pytest.mark.slow
def test_options_of_a_component_reach_what_is_in_it(own, host):
    """A provider, protect, transforms, deletedWith; a namespace and an image that are outputs."""
    seen = []

    def labelled(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        seen.append(args.type_)
        if args.type_ != "kubernetes:core/v1:Pod":
            return None
        labels = {**args.props["metadata"].get("labels", {}), "by": "transform"}
        props = {**args.props, "metadata": {**args.props["metadata"], "labels": labels}}
        return pulumi.ResourceTransformResult(props, args.opts)

    def program(name: str = "one", **more) -> None:
        provider = kubernetes.Provider("host", kubeconfig=pulumi.Output.secret(host["kubeconfig"]))
        on_host = pulumi.ResourceOptions(provider=provider)
        space = kubernetes.core.v1.Namespace("space", opts=on_host)
        Remote(
            "GpuPod",
            name,
            {
                "image": space.metadata.name.apply(lambda it: f"registry.example/{it}:1"),
                "namespace": space.metadata.name,
                "env": {"TOKEN": pulumi.Output.secret("hush-hush"), "PLAIN": "seen"},
                "readySeconds": 0,
            },
            pulumi.ResourceOptions(
                providers=[provider], transforms=[labelled], deleted_with=space, **more
            ),
        )

    own.up(program)
    state = Declared(own)
    pod = state["Pod", "one-pod"]
    assert "kubernetes::host" in pod["provider"]
    assert pod["inputs"]["metadata"]["labels"]["by"] == "transform"
    assert pod["deletedWith"].endswith("::space")
    where = pod["inputs"]["metadata"]["namespace"]
    assert where.startswith("space-")
    (container,) = own_pod(host, where).spec.containers
    assert container.image == f"registry.example/{where}:1"
    assert {it.name: it.value for it in container.env} == {"TOKEN": "hush-hush", "PLAIN": "seen"}
    assert "hush-hush" not in own.state()

    # What is protected stays, until the program says otherwise.
    own.up(lambda: program(protect=True))
    assert Declared(own)["Pod", "one-pod"]["protect"]
    assert "protected" in own.fails(lambda: None)
    own.up(lambda: program(protect=False))


@pytest.mark.slow
def test_an_alias_keeps_what_a_renamed_component_made(own, host, unique):
    inputs = {"cluster": host, "team": unique, "queues": ["train"], "namespace": "default"}

    def program(name: str = "old", **more) -> None:
        Remote("QueueGuard", name, inputs, pulumi.ResourceOptions(**more))

    own.up(program)
    kind = ("validatingadmissionpolicy", f"kai-fleet-queues-{unique}")
    before = own.field(".metadata.uid", *kind)
    assert before

    def renamed() -> None:
        program("new", aliases=[pulumi.Alias(name="old")])

    assert changed(own.up(renamed)) == {}
    assert own.field(".metadata.uid", *kind) == before
    assert Declared(own)["QueueGuard", "new"]
