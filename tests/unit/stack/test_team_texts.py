"""Every path by which a text of a team's lines reaches the engine's process, and what is refused.

A text whose form has no `::` may be part of a name; FREE are all others, and what they become:
content of an object or of a chart's values, and never a type or a name of a resource.
"""

import copy
import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

import pulumi
import pytest
from pydantic import BaseModel, SecretStr

from kai_fleet.declaring.argument_check import check
from kai_fleet.isolation.team_namespace import TeamNamespaceArgs
from kai_fleet.marks import REFUSAL, SIGNATURE
from kai_fleet.vcluster.virtual_cluster import VirtualClusterArgs
from kai_fleet_cli.plan.recorder import record
from kai_fleet_stack import stack_program
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.sections.teams import TeamSettings
from kai_fleet_stack.settings.team_stack import OwnTeam, TeamStack
from tests.unit.stack.stack_arguments import settings_of, stack, team_stack

FEIGNED = "x::pulumi:pulumi:Stack::kai-fleet:index:Team::y"
URL = f"https://id.example.com/{FEIGNED}"
ASSET = {SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "path": "/etc/passwd"}

# By path: a text that fits, and what it becomes.
FREE: dict[str, tuple[str, str]] = {
    "scheduler.fairshare.cron": (f"0 0 * * {FEIGNED}", "a field of the SchedulingShard"),
    "scheduler.fairshare.prometheus": (URL, "a field of KAI's Config"),
    "scheduler.chart": (
        f"{URL}/kai-scheduler-v0.16.8.tgz",
        "the chart that Helm reads, which rules bound",
    ),
    "scheduler.values.KEY": (FEIGNED, "values of the chart, which a rule bounds"),
    "scheduler.values.*": (FEIGNED, "values of the chart, which a rule bounds"),
    "queues.*.displayName": (FEIGNED, "a field of the Queue"),
    "queues.*.preemptMinRuntime": (FEIGNED, "a field of the Queue, which a rule bounds"),
    "queues.*.reclaimMinRuntime": (FEIGNED, "a field of the Queue, which a rule bounds"),
    "registries.*.password": (FEIGNED, "content of a Secret"),
    "vcluster.chart": (
        f"{URL}/vcluster-0.36.1.tgz",
        "the chart that Helm reads, which rules bound",
    ),
    "vcluster.values.KEY": (FEIGNED, "values of the chart, which a rule bounds"),
    "vcluster.values.*": (FEIGNED, "values of the chart, which a rule bounds"),
    "vcluster.access.annotations.*": (FEIGNED, "an annotation, in the chart's values"),
    "vcluster.oidc.issuer": (URL, "a flag of the API server, in the chart's values"),
    "vcluster.oidc.clientId": (FEIGNED, "a flag of the API server, in the chart's values"),
    "vcluster.oidc.usernameClaim": (FEIGNED, "a flag of the API server, in the chart's values"),
    "vcluster.oidc.groupsClaim": (FEIGNED, "a flag of the API server, in the chart's values"),
    "vcluster.oidc.ca": (f"-----BEGIN CERTIFICATE-----\n{FEIGNED}", "content of a ConfigMap"),
    "vcluster.oidc.scopes[]": (FEIGNED, "an argument of kubectl, which `fleet` prints"),
    "vcluster.groups.KEY": (FEIGNED, "a subject of RoleBindings"),
    "vcluster.store.dataSource": (f"postgres://{FEIGNED}", "values of the chart"),
    "annotations.*": (FEIGNED, "an annotation"),
    "backup.accountAnnotations.*": (FEIGNED, "an annotation"),
    "backup.kubectlImage": (FEIGNED, "an image of a CronJob, which a rule bounds"),
    "backup.resticImage": (FEIGNED, "an image of a CronJob, which a rule bounds"),
    "affinity.*.KEY": (FEIGNED, "values of the chart"),
    "affinity.*.*": (FEIGNED, "values of the chart"),
}
# Of a team's own stack, beside the same keys below `team`.
OF_STACK = {
    "platform.stack": "the name of a stack, which a StackReference asks the backend for",
    "team.name": "a name",
    "cluster.context": "a context of the kubeconfig of who runs it",
    "cluster.kubeconfig": "the kubeconfig of who runs it",
    "removed[]": "names of teams, which are compared",
    "workloads.KEY": "the name of the team, which is compared",
    "workloads.*.KEY": "a path below the project's folder; the content: test_manifests.py",
    "workloads.*.*[].KEY": "content of the file",
    "workloads.*.*[].*": "content of the file",
}
# A key for `*`, by the key above it.
SAMPLES = {
    "minRuntime": "preempt",
    "resources": "requests",
    "affinity": "nodeAffinity",
    "registries": "registry.example.com",
    "pools": "default",
}
# What has to stand beside some keys.
BESIDE = {
    "oidc": {"issuer": "https://id.example.com", "clientId": "kubernetes"},
    "registries": {"username": "reader", "password": "x"},
    "tolerations": {"key": "gpu"},
    "store": {"type": "external", "dataSource": "postgres://x"},
    "backup": {"to": "claim/copies"},
}


def texts(kind: Any, path: str = "", seen: tuple[Any, ...] = ()) -> Iterator[str]:
    """The paths of a model where a text may stand; KEY and `*` are a mapping's keys and values."""
    origin, inside = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items() if kind not in seen else ():
            below = f"{path}.{field.alias or name}".lstrip(".")
            yield from texts(field.annotation, below, (*seen, kind))
    elif origin is dict:
        if [*texts(inside[0])]:
            yield f"{path}.KEY"
        yield from texts(inside[1], f"{path}.*", seen)
    elif origin is list:
        yield from texts(inside[0], f"{path}[]", seen)
    elif origin is Annotated:
        yield from texts(inside[0], path, seen)
    elif origin in (Union, types.UnionType):
        for each in inside:
            yield from texts(each, path, seen)
    elif kind in (str, SecretStr, Any):
        yield path


def with_text(path: str, text: Any) -> dict[str, Any]:
    """The mapping that has a text at a path, and what has to stand beside it."""
    name, _, rest = path.partition(".")
    key = name.removesuffix("[]")
    if rest.startswith("*"):
        below = rest.partition(".")[2]
        chosen = SAMPLES.get(key, "example.com/a" if "annotations" in key else "x")
        value: Any = {chosen: with_text(below, text) if below else text}
        if below and key in BESIDE:
            value[chosen] = {**BESIDE[key], **value[chosen]}
    elif rest == "KEY":
        value = {text: of_key(key)}
    elif rest:
        value = {**BESIDE.get(key, {}), **with_text(rest, text)}
    else:
        value = text
    if key == "KEY":
        return {text: 1}
    return {key: [value] if name.endswith("[]") else value}


def of_key(above: str) -> Any:
    """A value that fits below a key of any name."""
    counts = ("devices", "deviceClasses", "gpus", "pools")
    values = {"groups": "view", "topologies": ["x"], "registries": BESIDE["registries"]}
    values |= dict.fromkeys(counts, 1)
    values |= dict.fromkeys(("nodePool", "labels", "annotations"), "x")
    return values.get(above, {})


def with_team(written: dict[str, Any]) -> dict[str, Any]:
    """A stack file with a team that has this, and what has to stand beside it."""
    team = copy.deepcopy(written)
    if "scheduler" in team:
        team["scheduler"] = {"mode": "virtual", "version": "v0.16.8", **team["scheduler"]}
    if "groups" in team.get("vcluster", {}):
        team["vcluster"]["oidc"] = BESIDE["oidc"]
    return {**stack(team), "keyDomains": ["example.com"]}


PATHS = [*dict.fromkeys(texts(TeamSettings))]


def test_tables_have_every_path_of_what_a_team_writes():
    assert {*FREE} <= {*PATHS}
    own = {path for path in texts(TeamStack) if path not in {f"team.{p}" for p in texts(OwnTeam)}}
    assert own | {"team.name"} == {*OF_STACK}
    assert {*texts(OwnTeam)} - {*PATHS} == {"name"}


@pytest.mark.parametrize("path", [path for path in PATHS if path not in FREE])
def test_load_refuses_colons_in_a_row_in_what_may_become_a_name(path):
    mistakes = load(with_team(with_text(path, FEIGNED))).mistakes
    if path == "registries.*.username":  # no message has an account
        assert "which does not fit" in mistakes[0].message
    else:
        assert any(FEIGNED in f"{mistake.path} {mistake.message}" for mistake in mistakes)


@pytest.mark.parametrize("path", FREE)
def test_program_any_other_text_is_no_part_of_a_name(path, monkeypatch):
    """Whatever the rules say of it, which this program does not ask."""
    raw = with_team(with_text(path, FREE[path][0]))
    monkeypatch.setattr(stack_program, "checked_settings", lambda *_: settings_of(raw))
    declared = record("lab", raw, program=stack_program.program)
    assert len(declared) > 20
    for item in declared:
        assert FEIGNED not in f"{item.urn} {item.type} {item.name} {item.provider}", path


@pytest.mark.parametrize("path", PATHS)
def test_load_refuses_a_mark_of_pulumis_protocol_at_every_path(path):
    written = with_text(path, SIGNATURE)
    own = team_stack(stack(), **written)
    for mistakes in (load(with_team(written)).mistakes, own.mistakes):
        assert any(mistake.message == REFUSAL for mistake in mistakes), path


@pytest.mark.parametrize(
    "written",
    [
        {"vcluster": {"values": {"a": [{"b": ASSET}]}}},
        {"scheduler": {"mode": "virtual", "version": "v0.16.8", "values": ASSET}},
        {"annotations": ASSET},
        {"labels": ASSET},
        {"nodePool": ASSET},
        {"affinity": {"nodeAffinity": {"x": ASSET}}},
        {"queues": {SIGNATURE: {}}},
    ],
    ids=str,
)
def test_load_refuses_a_file_of_the_operators_machine(written):
    assert [m.message for m in load(stack(written)).mistakes].count(REFUSAL) == 1


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (TeamNamespaceArgs, {"annotations": ASSET}),
        (TeamNamespaceArgs, {"labels": ASSET}),
        (VirtualClusterArgs, {"values": {"a": [ASSET]}}),
        (VirtualClusterArgs, {"affinity": {"nodeAffinity": ASSET}}),
        (VirtualClusterArgs, {"access": {"annotations": ASSET}}),
    ],
)
def test_check_refuses_a_file_of_the_operators_machine(kind, args):
    with pytest.raises(pulumi.RunError, match=f"Thing ml: .*{SIGNATURE} {REFUSAL}"):
        check("Thing ml", kind, args)
