"""Taints that pods tolerate, as a stack file, Kubernetes, vCluster and the guards write them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from kai_fleet.settings.sections.labels import LabelKey, LabelValue
from kai_fleet.settings.sections.model import Strict


class Toleration(Strict):
    """A taint of nodes that everything of a team tolerates."""

    key: LabelKey = Field(description="write the taint's key, such as nvidia.com/gpu")
    operator: Literal["Equal", "Exists"] | None = Field(
        default=None, description="Equal where there is a value, Exists where there is none."
    )
    value: LabelValue | None = Field(default=None, description="The taint's value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="The taint's effect; every one unless set."
    )

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        if self.operator == "Exists" and self.value is not None:
            raise ValueError("has a value, which Exists does not read; drop value, or write Equal")
        return self

    @property
    def spec(self) -> dict[str, str]:
        """As a pod has it."""
        if self.operator == "Exists" or (self.operator is None and self.value is None):
            spec = {"key": self.key, "operator": "Exists"}
        else:
            spec = {"key": self.key, "operator": "Equal", "value": self.value or ""}
        return {**spec, "effect": self.effect} if self.effect else spec

    @property
    def text(self) -> str:
        """As vCluster and the guards read it: `dedicated=ml:NoSchedule`, `nvidia.com/gpu:`.

        The colon stands there without an effect, too: vCluster takes a bare key for an empty value.
        """
        spec = self.spec
        value = f"={spec['value']}" if spec["operator"] == "Equal" else ""
        return f"{self.key}{value}:{self.effect or ''}"

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Whether a pod with it may be on a node with this taint."""
        spec = self.spec
        return (
            key == self.key
            and (spec["operator"] == "Exists" or spec["value"] == value)
            and self.effect in (None, effect)
        )
