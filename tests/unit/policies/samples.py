"""Small clusters that are right, for tests that make one thing wrong."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kai_fleet_policies.adapters.resource import DeclaredResource
from kai_fleet_policies.finding import Finding, Level
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.model.installed import Kai
from kai_fleet_policies.model.pods import PodContainer, PodTemplate
from kai_fleet_policies.model.queues import UNLIMITED, DeclaredQueue, QueueShare
from kai_fleet_policies.rules import BY_NAME
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import Facts
from kai_fleet_stack.validation import validate
from kai_usage.keys import QUEUE_LABEL, SCHEDULER

FREE = {r: QueueShare(UNLIMITED, UNLIMITED) for r in ("cpu", "memory", "gpu")}


def queue(name: Any, parent: Any = None, shares: Any = None, **more: Any) -> DeclaredQueue:
    more.setdefault("path", f"kai-fleet:queues.{name}")
    return DeclaredQueue(name, parent, FREE if shares is None else shares, **more)


def gpu_queue(name: str, parent: str | None, quota: Any, limit: Any = UNLIMITED) -> DeclaredQueue:
    return queue(name, parent, FREE | {"gpu": QueueShare(quota, limit)})


def workload(name: str = "train-a", **changes: Any) -> PodTemplate:
    right = PodTemplate(
        kind="Pod",
        name=name,
        namespace="team-a",
        scheduler=SCHEDULER,
        labels={QUEUE_LABEL: "test"},
        containers=(PodContainer("main"),),
        path=f"urn:pulumi:s::p::kubernetes:core/v1:Pod::{name}",
    )
    return replace(right, **changes)


def shared(**annotations: Any) -> PodTemplate:
    """A pod with annotations; underscores stand for dashes."""
    return workload(annotations={k.replace("_", "-"): v for k, v in annotations.items()})


def cluster(*workloads: PodTemplate, version: Any = "v0.9.3", **changes: Any) -> ClusterModel:
    """`default` with the leaf `test`, and KAI with GPU sharing."""
    right = ClusterModel(
        "host",
        path="kai-fleet:cluster",
        kai=(Kai(version, path="kai-fleet:kai"),),
        queues=(queue("default"), queue("test", "default")),
        workloads=workloads,
    )
    return replace(right, **changes)


def team(name: Any, mode: Any = "virtual", pool: Any = None, **more: Any) -> TeamModel:
    more.setdefault("path", f"kai-fleet:teams.{name}")
    labels = {"kai-fleet/pool": name} if pool is None else pool
    return TeamModel(name, namespace=f"team-{name}", node_pool=labels, mode=mode, **more)


def host(*teams: TeamModel, **changes: Any) -> ClusterModel:
    return replace(ClusterModel("host", teams=teams), **changes)


def found(rule: str, *clusters: ClusterModel) -> list[Finding]:
    """What one rule says."""
    every = (finding for cluster in clusters for finding in BY_NAME[rule].check(cluster))
    return list(dict.fromkeys(every))


def refusal(rule: str, *clusters: ClusterModel) -> Finding:
    """The one mandatory problem of a rule."""
    (problem,) = found(rule, *clusters)
    assert (problem.check, problem.level) == (rule, Level.MANDATORY), problem
    return problem


def open_question(rule: str, *clusters: ClusterModel) -> Finding:
    """The one advisory that says that a rule cannot decide yet."""
    (problem,) = found(rule, *clusters)
    assert (problem.check, problem.level) == (rule, Level.ADVISORY), problem
    assert problem.undecided
    return problem


def refused_keys(
    rule: str, raw: Mapping[str, Any], facts: Facts | None = None
) -> dict[str, Finding]:
    """What a rule refuses of a stack file, or of a team's by its platform's facts, by key."""
    problems = validate(raw, facts_of=lambda _: facts).problems
    found = [each for each in problems if (each.check, each.level) == (rule, Level.MANDATORY)]
    assert all(each.fix for each in found)
    return {each.path: each for each in found}


def granted(team_stacks: Mapping[str, Any], **platform: Any) -> Facts:
    """What the teams' own stacks read of a platform that grants them this."""
    raw = {"cluster": {"name": "lab", "context": "lab"}, "teamStacks": team_stacks, **platform}
    settings = load(raw).settings
    assert settings is not None
    return Facts.read(json.loads(json.dumps(Facts.of(settings).output())))


def refused_by(problems: Iterable[Finding]) -> set[str]:
    """The names of the rules with a mandatory problem."""
    return {problem.check for problem in problems if problem.level is Level.MANDATORY}


PROVIDER = "urn:pulumi:dev::shop::pulumi:providers:kubernetes::{}"


def resource(
    type_: str, name: str, props: Mapping[str, object], provider: str = ""
) -> DeclaredResource:
    return DeclaredResource(
        urn=f"urn:pulumi:dev::shop::{type_}::{name}",
        type=type_,
        name=name,
        props=props,
        provider=PROVIDER.format(provider) if provider else "",
    )


def manifest(document: Mapping[str, Any], provider: str = "") -> DeclaredResource:
    """A Kubernetes manifest as the resource that a program would declare for it."""
    version = document["apiVersion"]
    group = version if "/" in version else f"core/{version}"
    type_ = f"kubernetes:{group}:{document['kind']}"
    return resource(type_, document["metadata"]["name"], document, provider)


@dataclass(frozen=True)
class Case:
    """A cluster in which a rule finds one problem."""

    name: str
    cluster: ClusterModel
    path: str
    finding: Callable[..., Finding]

    def reported_by(self, rule: str, texts: Callable[..., None]) -> None:
        """Hold the rule to level and path, and its sentence to the table of texts."""
        problem = self.finding(rule, self.cluster)
        assert problem.path == self.path
        texts(problem)


def refuses(name: str, cluster: ClusterModel, path: str) -> Case:
    """A case that a rule refuses at a path."""
    return Case(name, cluster, path, refusal)


def waits(name: str, cluster: ClusterModel, path: str) -> Case:
    """A case that a rule decides in the update."""
    return Case(name, cluster, path, open_question)


def cases(tables: Mapping[str, Iterable[Case]]) -> list[Any]:
    """Cases by the names of their rules, as one list."""
    return [
        pytest.param(rule, case, id=f"{rule} {case.name}")
        for rule, table in tables.items()
        for case in table
    ]


def passing(tables: Mapping[str, Iterable[ClusterModel]]) -> list[Any]:
    """Clusters in which a rule finds nothing, by the names of the rules, as one list."""
    return [
        pytest.param(rule, seen, id=f"{rule} {number}")
        for rule, clusters in tables.items()
        for number, seen in enumerate(clusters)
    ]
