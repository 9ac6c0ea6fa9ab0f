"""Where the charts, images and registries that chart values name come from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kai_fleet.releases.sources import (
    KnownSources,
    NoPlaceError,
    chart_place,
    image_place,
    in_any,
    is_tag,
    registry_place,
)
from kai_fleet.values import UNKNOWN, items

# Keys and variables are known by their names, so that one of a newer chart is seen as well.
_NAMES: Final = re.compile(r"image|registry|repository|mirror|^repo$|artifact|speaker|bundle")
_NO_NAMES: Final = re.compile(r"pull(policy|secrets?)|clearimagestatus")
_TAG: Final = re.compile(r"(tag|digest|version)$")
_FLAG: Final = re.compile(r"-.*(image|registry|repository)", re.DOTALL)
_BARE: Final = re.compile(r"[a-z0-9]+([._-]+[a-z0-9]+)*(:[\w.-]+)?")
_HOST: Final = re.compile(r"[^/]*[.:][^/]*/|localhost/")
# Manifests for the inside of a vCluster name the images of its users.
_USERS_OWN: Final = ("experimental.deploy.vcluster.manifests", "snapshots")
_ELSEWHERE: Final = "is from a place that the platform does not name as a source"


def wrong_chart(chart: str, known: KnownSources) -> str | None:
    """What is wrong with the location of a chart; None where it leads to a known place."""
    try:
        return None if in_any(chart_place(chart), known.chart_places) else _ELSEWHERE
    except NoPlaceError as error:
        return str(error)


def wrong_image(name: str, known: KnownSources, *, registry: bool = False) -> str | None:
    """What is wrong with an image's name or a registry; None where it leads to a known place."""
    try:
        place = registry_place(name) if registry else image_place(name)
    except NoPlaceError as error:
        return str(error)
    return None if in_any(place, known.image_places) else _ELSEWHERE


@dataclass(frozen=True)
class ImageScan:
    """What chart values name: `home` is the registry, and `image` a repository there, that the
    chart has of itself where only one of the two is written; "" where a registry is never apart.
    """

    known: KnownSources
    home: str = ""
    image: str = ""

    def wrong(
        self, values: object, key: str = "", *, named: bool = False, listed: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Each key whose value names an image, a registry or a chart from elsewhere, and why; ""
        where it is not known yet.

        `named`: a key above names images. `listed`: it is in a list, where a bare name is no image
        of the chart's own registry.
        """
        if isinstance(values, Mapping):
            yield from self._mapping(values, key, named=named, listed=listed)
        elif isinstance(values, str):
            if _FLAG.match(values.strip()):
                yield key, "is a flag that names an image"
            elif named and values and (why := wrong_image(values, self.known)):
                yield key, why
        else:
            for item in items(values):
                yield from self.wrong(item, key, named=named, listed=True)

    def _mapping(
        self, values: Mapping[str, object], above: str, *, named: bool, listed: bool
    ) -> Iterator[tuple[str, str]]:
        if isinstance(variable := values.get("name"), str) and "value" in values:
            values = {**values, variable: values["value"]}
        for name, value in values.items():
            key = f"{above}.{name}" if above else str(name)
            low = re.sub(r"[^a-z]", "", str(name).lower())
            if key.startswith(_USERS_OWN) or _NO_NAMES.search(low):
                continue
            names_image = bool(_NAMES.search(low)) or (named and low in ("name", "url"))
            if isinstance(value, str) and "manifests" in low:
                yield key, "has manifests, in which no image is looked at"
            elif low == "chart" and isinstance(value, Mapping):  # that a vCluster installs inside
                parts = (
                    str(part).rstrip("/") for key in ("repo", "name") if (part := value.get(key))
                )
                if why := wrong_chart("/".join(parts), self.known):
                    yield key, why
            elif isinstance(value, str) and _TAG.search(low) and not names_image:
                if not is_tag(value):
                    yield key, "is no tag and no sha256 digest, and may continue the image's name"
            elif names_image and (isinstance(value, str) or value is None or value is UNKNOWN):
                why = self._why(low, value, values, listed=listed)
                if why is not None:
                    yield key, why
            else:
                yield from self.wrong(value, key, named=named or names_image, listed=listed)

    def _why(
        self, low: str, value: object, beside: Mapping[str, object], *, listed: bool
    ) -> str | None:
        """What is wrong with one name; "" where it is not known yet."""
        if value is UNKNOWN:
            return ""
        text, registry = str(value or ""), low.endswith(("registry", "mirror"))
        if not text:
            needed = registry or low == "repository"
            return "is empty, so that the name beside it may lead anywhere" if needed else None
        if low in ("repo", "bundle"):
            return wrong_chart(text, self.known)
        if low == "registry" and self.image:
            if isinstance(beside.get("repository"), str):
                return None  # judged there
            text = f"{text}/{self.image}"
        elif low == "repository" and not _HOST.match(text):
            home = beside.get("registry", self.home)
            text = f"{home}/{text}" if home else text
        elif _BARE.fullmatch(text) and not listed and not registry:
            return None  # relative to the chart's own registry
        return wrong_image(text, self.known, registry=registry)
