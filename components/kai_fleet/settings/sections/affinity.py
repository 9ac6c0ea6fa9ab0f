"""Which nodes pods prefer or need, and beside which pods they are: as Kubernetes has it."""

from typing import Any

from pydantic import Field

from kai_fleet.settings.sections.model import Strict


class Affinity(Strict):
    """A pod's affinity; below these keys everything is Kubernetes' own."""

    node_affinity: dict[str, Any] | None = Field(default=None, description="Nodes, by labels.")
    pod_affinity: dict[str, Any] | None = Field(default=None, description="Near these pods.")
    pod_anti_affinity: dict[str, Any] | None = Field(
        default=None, description="Away from these pods."
    )

    @property
    def spec(self) -> dict[str, Any]:
        """As a pod has it."""
        return self.model_dump(by_alias=True, exclude_none=True)
