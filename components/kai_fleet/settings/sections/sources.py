"""Where charts and images may come from, besides what the release tables name."""

from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from kai_fleet.releases import sources
from kai_fleet.releases.sources import NoPlaceError
from kai_fleet.settings.sections.model import Strict
from kubectl_fleet.wording import MASK

ENCRYPTED: Final = "is encrypted, and is no secret: reviewers have to read it; write it in clear"


def _chart(value: Any) -> Any:
    return _checked(value, "oci://mirror.example.com/charts", sources.chart_place)


def _image(value: Any) -> Any:
    return _checked(value, "mirror.example.com, or ghcr.io/organisation", sources.registry_place)


def _checked(value: Any, example: str, place: Any) -> Any:
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
    BeforeValidator(_chart),
    StringConstraints(max_length=2048),
    WithJsonSchema(
        {"type": "string", "pattern": "^(oci|https)://", "description": "oci://…, https://…"}
    ),
]
ImageSource = Annotated[
    str,
    BeforeValidator(_image),
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
