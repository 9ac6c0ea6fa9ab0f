"""One request for a component, and the judgement of its settings by the rules of a stack file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.package.arguments import ARGUMENTS
from kai_fleet.package.inputs import Given
from kai_fleet.provider.errors import PluginError
from kai_fleet.provider.tokens import PACKAGE
from kai_fleet.settings import Settings, validated
from kai_fleet.settings.mistakes import NAMESPACE, Mistake
from kai_fleet.settings.sections.model import Strict
from kai_fleet.state.deployed_state import DeployedState
from kai_fleet_policies.problem import Level
from kai_fleet_policies.rules import RULES, Rule
from kai_fleet_policies.validation import validate, validate_types

M = TypeVar("M", bound=Strict)
# What a component that needs a KAI to be judged, and no more of it, is judged with.
CLUSTER: Final = {"name": "cluster", "context": "given"}
_KUBERNETES: Final = "kubernetes"
_PROVIDER: Final = f"pulumi:providers:{_KUBERNETES}"


@dataclass(frozen=True)
class Request:
    """A component of this kind and name, what it is given, and what its stack runs now."""

    kind: str
    name: str
    given: Given
    opts: pulumi.ResourceOptions
    deployed: DeployedState

    def arguments(self) -> Any:
        """The inputs as the model of this kind. Raises PluginError with every mistake."""
        found, wrong, _ = validated(ARGUMENTS[self.kind], self.given.raw)
        self._refuse([*self.given.unknown, *(self._here(it, {}) for it in wrong)])
        return found

    def settings(
        self, raw: Mapping[str, Any], places: Mapping[str, str], *, rules: Sequence[Rule] = RULES
    ) -> Settings:
        """A stack file's settings of these parts, once no rule has anything against them.

        `places` tells what stands at a key of the stack file: its path among the inputs. Raises
        PluginError with every mistake; advisories are shown as warnings.
        """
        # What is a secret comes as one, and becomes one where it does not: nothing is in clear.
        sealed = frozenset(raw)
        if rules:
            verdict = validate(raw, self.deployed, encrypted=sealed, only=rules)
        else:
            verdict = validate_types(raw)
        for problem in verdict.problems:
            if problem.level is Level.ADVISORY:
                pulumi.log.warn(f"{self.kind} {self.name}: {problem.subject}: {problem.message}")
        refused = [Mistake(problem.path, problem.message) for problem in verdict.refused]
        self._refuse([self._here(it, places) for it in refused])
        if verdict.settings is None:
            raise PluginError(f"{self.kind} {self.name}: its settings cannot be read")
        return verdict.settings

    def sources(self) -> dict[str, Any]:
        """The part of a stack file about charts and images, as far as the inputs have it."""
        return {key: it for key, it in self.given.raw.items() if key == "sources"}

    def access(self, path: str = "cluster") -> ClusterAccess:
        """How the cluster among the inputs is reached. Raises PluginError."""
        at = self.given.raw[path]
        if ("context" in at) == ("kubeconfig" in at):
            self._refuse(
                [
                    Mistake(
                        f"{path}.context",
                        "is needed, or kubeconfig, and only one of them: the component never takes"
                        " whatever cluster happens to be current",
                    )
                ]
            )
        return ClusterAccess(
            str(at["name"]),
            context=at.get("context"),
            kubeconfig=self.given.input(path, "kubeconfig"),
        )

    def on_cluster(self) -> pulumi.ResourceOptions:
        """The options with a provider of the cluster, unless the program gave one itself."""
        providers: dict[str, pulumi.ProviderResource] = {}
        if isinstance(self.opts.providers, Mapping):  # as the engine hands them over
            providers |= self.opts.providers
        if _KUBERNETES in providers or "cluster" not in self.given.raw:
            return self.opts
        # The parent is known by its URN alone: what it would hand down is said here.
        before = [self._alias_beside(it) for it in self.opts.aliases or ()]
        beside = pulumi.ResourceOptions(parent=self.opts.parent, protect=False, aliases=before)
        providers[_KUBERNETES] = self.access().provider(self._beside(self.name), beside)
        return pulumi.ResourceOptions.merge(self.opts, pulumi.ResourceOptions(providers=providers))

    def _beside(self, name: str) -> str:
        """What the provider beside a component of this name is called."""
        return f"{name}-{self.kind.lower()}-cluster"

    def _alias_beside(self, alias: Any) -> str | pulumi.Alias:
        """The provider's alias where the component has this one."""
        if isinstance(alias, str):
            head, _, name = alias.rpartition("::")
            above = head.removesuffix(f"{PACKAGE}:index:{self.kind}")
            return f"{above}{_PROVIDER}::{self._beside(name)}"
        said = {key: value for key, value in vars(alias).items() if value is not ...}
        said.pop("type_", None)
        if isinstance(said.get("name"), str):
            said["name"] = self._beside(said["name"])
        return pulumi.Alias(**said)

    def _here(self, mistake: Mistake, places: Mapping[str, str]) -> Mistake:
        path = mistake.path
        for key in sorted(places, key=len, reverse=True):
            stands = f"{NAMESPACE}:{key}"
            if f"{path}.".startswith(f"{stands}."):
                rest = path.removeprefix(stands).lstrip(".")
                return replace(mistake, path=".".join(it for it in (places[key], rest) if it))
        return replace(mistake, path=path.removeprefix(f"{NAMESPACE}:"))

    def _refuse(self, found: Iterable[Mistake]) -> None:
        lines = [f"  {it.path}: {it.message}" for it in found]
        if lines:
            count = f"{len(lines)} mistake{'s' if len(lines) != 1 else ''}"
            raise PluginError("\n".join([f"{self.kind} {self.name} has {count}:", *lines]))


Result = tuple[pulumi.ComponentResource, dict[str, Any]]
