"""What belongs to the host cluster: its GPU stack and its KAI."""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from kai_fleet.settings.sections import sharing
from kai_fleet.settings.sections.affinity import Affinity
from kai_fleet.settings.sections.model import Strict
from kai_fleet.settings.sections.scheduling import Scheduling
from kai_fleet.settings.sections.sharing import Sharing
from kai_fleet.settings.sections.tolerations import Toleration

Version = Annotated[str, StringConstraints(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$")]
KaiVersion = Annotated[str, StringConstraints(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]


def _is_not_the_host(name: str) -> str:
    if name == "host":
        raise ValueError("is what findings and metrics call the host cluster; write another name")
    return name


TeamName = Annotated[Name, AfterValidator(_is_not_the_host)]
Chart = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
Values = dict[str, Any]
NVIDIA: Final = "nvidia.com/gpu"
EXAMPLE_VERSION: Final = "v0.16.8"  # what messages tell to write
UNTESTED = "Let a version through that is newer than the table; it is taken for its newest line."


class Gpu(Strict):
    """The GPU stack of the host cluster."""

    provider: Literal["operator", "device-plugin", "none"] = Field(
        default="none", description="`none` where nodes advertise GPUs already, or have none."
    )
    version: Version | None = Field(default=None, description="Chart version.")
    chart: Chart | None = Field(
        default=None, description="Another chart, oci://… or https://…, of a place in sources."
    )
    resource: Literal["nvidia.com/gpu", "amd.com/gpu"] = Field(
        default="nvidia.com/gpu", description="The name under which nodes advertise GPUs."
    )
    values: Values = Field(default_factory=dict, description="Merged over the chart's values.")
    system_priorities: bool = Field(
        default=False,
        description="Admit system priority classes in its namespace by a ResourceQuota: for GKE.",
    )


class HostKai(Scheduling):
    """The KAI scheduler of the host cluster, for teams in host mode."""

    version: KaiVersion = Field(description=f"Such as {EXAMPLE_VERSION}: a release of the table.")
    gpu_sharing: Sharing = Field(
        default_factory=sharing.default,
        description="Fractions of a GPU: true unless set. A stack file may say {mode: …} too.",
    )
    untested: bool = Field(default=False, description=UNTESTED)
    chart: Chart | None = Field(
        default=None, description="Another chart, oci://… or https://…, of a place in sources."
    )
    tolerations: list[Toleration] = Field(
        default_factory=list, description="Taints of nodes that all of its parts tolerate."
    )
    affinity: Affinity | None = Field(default=None, description="Where all of its parts are.")
    values: Values = Field(default_factory=dict, description="Merged over the table's values.")
