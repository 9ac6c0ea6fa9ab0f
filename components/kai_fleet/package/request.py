"""One request for a component: its inputs, and the judgement of its settings by the rules."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

import pulumi
from google.protobuf.struct_pb2 import Struct, Value
from pulumi.resource import DependencyResource
from pydantic import BaseModel

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import ExistingObjects, directly, of_own_cluster
from kai_fleet.fleet.deployed_state import DeployedState
from kai_fleet.package.arguments import ARGUMENTS
from kai_fleet.provider import PACKAGE, PluginError
from kai_fleet.provider.values import scalar, unmarked
from kai_fleet.releases import KAI
from kai_fleet.settings import Settings, load, validated
from kai_fleet.settings.mistakes import NAMESPACE, Mistake
from kai_fleet.wording import counted

KeyPath = tuple[str, ...]
# Where a value may be an output that is not known yet; `*` is any key.
MAY_BE_LATER: Final[tuple[KeyPath, ...]] = (
    ("cluster", "kubeconfig"),
    ("namespace",),
    ("image",),
    ("env", "*"),
    ("huggingFaceToken",),
    ("store", "dataSource"),
    ("vcluster", "store", "dataSource"),
    ("registries", "*", "password"),
)
KNOWN_LATER: Final = "known-later"
_TOO_LATE: Final = (
    "is not known before the update, and decides what is made; write a value that is known, or"
    " declare this component in a later update"
)


@dataclass
class ComponentInputs:
    """`raw` are the inputs as a stack file would have them, `outputs` those among them that are
    secret or not known yet, by path; `unknown` tells of what should have been known.
    """

    raw: dict[str, Any] = field(default_factory=dict)
    outputs: dict[KeyPath, pulumi.Output[Any]] = field(default_factory=dict)
    unknown: list[Mistake] = field(default_factory=list)
    has_secrets: bool = False

    def at(self, *path: str) -> Any:
        """The value at a path, as an output where it is a secret or not known yet; None if none."""
        if path in self.outputs:
            return self.outputs[path]
        here: Any = self.raw
        for key in path:
            here = here.get(key) if isinstance(here, Mapping) else None
        return here

    def add(self, path: KeyPath, value: Value, secret: bool, urns: frozenset[str]) -> Any:
        """Note what is special about a value and those in it; return it plain.

        `secret` and `urns`, the resources it comes from, are those of what holds it.
        """
        inner = unmarked(value)
        content, secret, urns = inner.content, secret or inner.secret, urns | inner.urns
        self.has_secrets = self.has_secrets or secret
        may_be_later = any(
            len(path) == len(pattern)
            and all(want in ("*", key) for key, want in zip(path, pattern, strict=True))
            for pattern in MAY_BE_LATER
        )
        if content is None:
            if not may_be_later:
                self.unknown.append(Mistake(".".join(path), _TOO_LATE))
                return None
            self.outputs[path] = _output(None, known=False, secret=secret, urns=urns)
            return KNOWN_LATER
        if content.HasField("struct_value"):
            fields = content.struct_value.fields.items()
            items = {key: self.add((*path, key), item, secret, urns) for key, item in fields}
            return {key: item for key, item in items.items() if item is not None}
        if content.HasField("list_value"):
            values = enumerate(content.list_value.values)
            return [self.add((*path, str(n)), item, secret, urns) for n, item in values]
        known = scalar(content)
        if secret and may_be_later:
            self.outputs[path] = _output(known, known=True, secret=True, urns=urns)
        return known


def read_inputs(inputs: Struct, dependencies: Mapping[str, Any] | None = None) -> ComponentInputs:
    """The inputs of a component, of which null ones are left out.

    `dependencies` are those of each, as a ConstructRequest has them.
    """
    result = ComponentInputs()
    for key, value in inputs.fields.items():
        urns = frozenset(dependencies[key].urns if dependencies and key in dependencies else ())
        known = result.add((key,), value, False, urns)
        if known is not None:
            result.raw[key] = known
    return result


def _output(value: Any, *, known: bool, secret: bool, urns: frozenset[str]) -> pulumi.Output[Any]:
    resources: set[pulumi.Resource] = {DependencyResource(urn) for urn in urns}
    return pulumi.Output(resources, _resolved(value), _resolved(known), _resolved(secret))


def _resolved(value: Any) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


# A component, and its outputs.
Result: TypeAlias = tuple[pulumi.ComponentResource, dict[str, Any]]

NEWEST_KAI: Final[str] = list(KAI)[-1]
_KUBERNETES: Final = "kubernetes"
_PROVIDER: Final = f"pulumi:providers:{_KUBERNETES}"


@dataclass(frozen=True)
class Judgement:
    """What rules say of a stack file: its settings, what refuses them, and what is doubtful."""

    settings: Settings | None
    refused: Iterable[Mistake] = ()
    warnings: Iterable[str] = ()


# What a component stands for: a whole stack, or a vCluster without a team.
Subject: TypeAlias = Literal["stack", "vcluster"]
# Judges a stack file's `kai-fleet:` part, with its secrets in clear, and what the stack runs now.
Judge: TypeAlias = Callable[[Mapping[str, Any], DeployedState, Subject], Judgement]


def by_types(raw: Mapping[str, Any], deployed: DeployedState, subject: Subject) -> Judgement:
    """Judge by the types of the settings alone."""
    loaded = load(raw)
    return Judgement(loaded.settings, loaded.mistakes)


@dataclass(frozen=True)
class ComponentRequest:
    """A component of this kind and name, its inputs and options, and what its stack runs now."""

    kind: str
    name: str
    inputs: ComponentInputs
    opts: pulumi.ResourceOptions
    deployed: DeployedState
    judge: Judge

    def arguments(self) -> Any:
        """The inputs as the model of this kind. Raises PluginError with every mistake."""
        arguments, mistakes, _ = validated(ARGUMENTS[self.kind], self.inputs.raw)
        self._refuse([*self.inputs.unknown, *(_moved(it, {}) for it in mistakes)])
        return arguments

    def settings(
        self,
        stack: Mapping[str, Any],
        places: Mapping[str, str],
        *,
        judge: Judge | None = None,
        subject: Subject = "stack",
    ) -> Settings:
        """The settings of this stack file, once no rule has anything against them.

        `places` tells what stands at a key of the stack file: its path among the inputs. Raises
        PluginError with every mistake; advisories are shown as warnings.
        """
        judgement = (judge or self.judge)(stack, self.deployed, subject)
        for warning in judgement.warnings:
            pulumi.log.warn(f"{self.kind} {self.name}: {warning}")
        self._refuse(_moved(mistake, places) for mistake in judgement.refused)
        if judgement.settings is None:
            raise PluginError(f"{self.kind} {self.name}: its settings cannot be read")
        return judgement.settings

    def part(self, *keys: str, of: type[BaseModel] | None = None) -> dict[str, Any]:
        """The inputs with these keys, and those that are fields of a settings model."""
        fields = of.model_fields if of else {}
        names = {*keys, *(field.alias or name for name, field in fields.items())}
        return {key: value for key, value in self.inputs.raw.items() if key in names}

    def access(self) -> ClusterAccess:
        """How the cluster among the inputs is reached. Raises PluginError."""
        cluster = self.inputs.raw["cluster"]
        if ("context" in cluster) == ("kubeconfig" in cluster):
            message = (
                "is needed, or kubeconfig, and only one of them: the component never takes whatever"
                " cluster happens to be current"
            )
            self._refuse([Mistake("cluster.context", message)])
        return ClusterAccess(
            str(cluster["name"]),
            context=cluster.get("context"),
            kubeconfig=self.inputs.at("cluster", "kubeconfig"),
        )

    def existing(self) -> ExistingObjects:
        """What the cluster among the inputs has already; nothing where it is not known yet."""
        cluster = self.inputs.raw.get("cluster") or {}
        context, kubeconfig = cluster.get("context"), cluster.get("kubeconfig")
        if "kind" in cluster or kubeconfig == KNOWN_LATER or not (kubeconfig or context):
            return of_own_cluster(self.deployed)
        return directly(context, kubeconfig, self.deployed)

    def on_cluster(self) -> pulumi.ResourceOptions:
        """The options with a provider of the cluster, unless the program gave one itself."""
        providers: dict[str, pulumi.ProviderResource] = {}
        if isinstance(self.opts.providers, Mapping):  # as the engine hands them over
            providers |= self.opts.providers
        if _KUBERNETES in providers or "cluster" not in self.inputs.raw:
            return self.opts
        # The parent is known by its URN alone: what it would hand down is said here.
        aliases = [self._alias_of_provider(alias) for alias in self.opts.aliases or ()]
        opts = pulumi.ResourceOptions(parent=self.opts.parent, protect=False, aliases=aliases)
        providers[_KUBERNETES] = self.access().provider(self._provider_name(self.name), opts)
        return pulumi.ResourceOptions.merge(self.opts, pulumi.ResourceOptions(providers=providers))

    def _provider_name(self, name: str) -> str:
        """The name of the provider beside a component of this name."""
        return f"{name}-{self.kind.lower()}-cluster"

    def _alias_of_provider(self, alias: Any) -> str | pulumi.Alias:
        """The provider's alias where the component has this one."""
        if isinstance(alias, str):
            head, _, name = alias.rpartition("::")
            above = head.removesuffix(f"{PACKAGE}:index:{self.kind}")
            return f"{above}{_PROVIDER}::{self._provider_name(name)}"
        fields = {key: value for key, value in vars(alias).items() if value is not ...}
        fields.pop("type_", None)
        if isinstance(fields.get("name"), str):
            fields["name"] = self._provider_name(fields["name"])
        return pulumi.Alias(**fields)

    def _refuse(self, mistakes: Iterable[Mistake]) -> None:
        lines = [f"  {it.path}: {it.message}" for it in mistakes]
        if lines:
            count = counted(len(lines), "mistake")
            raise PluginError("\n".join([f"{self.kind} {self.name} has {count}:", *lines]))


def _moved(mistake: Mistake, places: Mapping[str, str]) -> Mistake:
    """A mistake of a stack file at its path among the inputs."""
    path = mistake.path.removeprefix(f"{NAMESPACE}:")
    for key in sorted(places, key=len, reverse=True):
        if f"{path}.".startswith(f"{key}."):
            rest = path.removeprefix(key).lstrip(".")
            return replace(mistake, path=".".join(it for it in (places[key], rest) if it))
    return replace(mistake, path=path)
