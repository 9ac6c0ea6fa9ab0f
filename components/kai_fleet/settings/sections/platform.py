"""What belongs to the host cluster: its GPU stack, its KAI, and where charts and images are."""

from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from kai_fleet.releases import sources
from kai_fleet.releases.sources import NoPlaceError
from kai_fleet.settings.sections.gpu_share import Sharing, sharing
from kai_fleet.settings.sections.kubernetes import Affinity, Toleration
from kai_fleet.settings.sections.model import Strict
from kai_fleet.settings.sections.scheduling import Scheduling
from kubectl_fleet.wording import MASK

Version = Annotated[str, StringConstraints(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$")]
KaiVersion = Annotated[str, StringConstraints(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]


def _is_not_the_host(name: str) -> str:
    if name == "host":
        raise ValueError("is what findings and metrics call the host cluster; write another name")
    return name


TeamName = Annotated[Name, AfterValidator(_is_not_the_host)]
Chart = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
OtherChart = Annotated[
    Chart | None,
    Field(description="Another chart, oci://… or https://…, of a place in sources."),
]
Untested = Annotated[
    bool,
    Field(
        description="Let a version through that is newer than the table; it is taken for its newest"
        " line."
    ),
]
Values = dict[str, Any]
NVIDIA: Final = "nvidia.com/gpu"
EXAMPLE_VERSION: Final = "v0.16.8"  # what messages tell to write


class Gpu(Strict):
    """The GPU stack of the host cluster."""

    provider: Literal["operator", "device-plugin", "none"] = Field(
        default="none", description="`none` where nodes advertise GPUs already, or have none."
    )
    version: Version | None = Field(default=None, description="Chart version.")
    chart: OtherChart = None
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
    gpu_sharing: Sharing = Field(default_factory=sharing)
    untested: Untested = False
    chart: OtherChart = None
    tolerations: list[Toleration] = Field(
        default_factory=list, description="Taints of nodes that all of its parts tolerate."
    )
    affinity: Affinity | None = Field(default=None, description="Where all of its parts are.")
    values: Values = Field(default_factory=dict, description="Merged over the table's values.")


ENCRYPTED: Final = "is encrypted, and is no secret: reviewers have to read it; write it in clear"


def _checked(example: str, place: Any, value: Any) -> Any:
    if value == MASK:
        raise ValueError(ENCRYPTED)
    if isinstance(value, str):
        try:
            place(value)
        except NoPlaceError as why:
            raise ValueError(f"is {sources.shown(value)}, which {why}; write {example}") from None
        _, *path = value.rpartition("://")[2].split("/")
        if "@" in value or (path and ":" in path[-1]):
            raise ValueError(f"names one version; write where all of them are: {example}")
    return value


ChartSource = Annotated[
    str,
    BeforeValidator(partial(_checked, "oci://mirror.example.com/charts", sources.chart_place)),
    StringConstraints(max_length=2048),
    WithJsonSchema(
        {"type": "string", "pattern": "^(oci|https)://", "description": "oci://…, https://…"}
    ),
]
ImageSource = Annotated[
    str,
    BeforeValidator(
        partial(_checked, "mirror.example.com, or ghcr.io/organisation", sources.registry_place)
    ),
    StringConstraints(max_length=2048),
    WithJsonSchema({"type": "string", "description": "a registry, or a path in one"}),
]


class Sources(Strict):
    """Where charts and images may come from, besides what the release tables name.

    `chart` and `values` of every other key stay within these. What users run, in
    kai-fleet:workloads and inside their vClusters, is their own.
    """

    charts: list[ChartSource] = Field(
        default_factory=list,
        description="Chart locations, such as oci://mirror.example.com/charts; what is below them"
        " counts.",
    )
    images: list[ImageSource] = Field(
        default_factory=list,
        description="Image registries, or paths in one, such as mirror.example.com; what is below"
        " them counts.",
    )

    @property
    def known(self) -> sources.KnownSources:
        """As the rules read them."""
        return sources.KnownSources(tuple(self.charts), tuple(self.images))
