"""Where charts and images come from: the places that the tables use, and what lies in a place.

Names are compared by host and by whole path segments: `ghcr.io/loft-sh-other` is not in
`ghcr.io/loft-sh`. What is not written in the one plain way is no name at all, so that no spelling
means one place here and another to Helm or to a container runtime.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kai_fleet.releases.tables import KAI_CHART, NVIDIA_CHART, VCLUSTER_REPOSITORY

# The charts of the GPU stack, of which there is one version each.
GPU_OPERATOR_REPOSITORY: Final = "https://helm.ngc.nvidia.com/nvidia"
GPU_OPERATOR_VERSION: Final = "v26.7.1"
DEVICE_PLUGIN_REPOSITORY: Final = "https://nvidia.github.io/k8s-device-plugin"
DEVICE_PLUGIN_VERSION: Final = "0.20.1"

# A directory of packaged charts, `<name>-<version>.tgz`, used in place of the registries:
# for air-gapped machines, and for the sandbox.
MIRROR: Final = "KAI_FLEET_CHARTS"

_OCI: Final = "oci://"
_HTTPS: Final = "https://"
_HUB: Final = "docker.io"

# Where KAI's charts are its images are, too.
KAI_IMAGES: Final = tuple(
    chart.removeprefix(_OCI).rpartition("/")[0] for chart in (NVIDIA_CHART, KAI_CHART)
)
CHARTS: Final = (
    *(f"{_OCI}{place}" for place in KAI_IMAGES),
    VCLUSTER_REPOSITORY,
    GPU_OPERATOR_REPOSITORY,
    DEVICE_PLUGIN_REPOSITORY,
)
# What the charts of the tables name by themselves.
IMAGES: Final = (
    *KAI_IMAGES,
    "ghcr.io/loft-sh",
    "nvcr.io/nvidia",
    "registry.k8s.io",
    *(f"{_HUB}/{image}" for image in ("coredns/coredns", "library/alpine", "rancher/k3s")),
    f"{_HUB}/kindest/node",
)

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?")
_SEGMENT: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_URL_SEGMENT: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._~+-]+")
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = r"sha256:[0-9a-f]{64}"
_VERSION: Final = re.compile(rf"(?::{_TAG})?(?:@{_DIGEST})?")
_TAGS: Final = re.compile(rf":?@?(?:{_DIGEST}|{_TAG}(?:@{_DIGEST})?)?")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._/:+~-]{1,200}")


class NoPlaceError(ValueError):
    """A name that names no place; the message completes "… is X, which"."""


@dataclass(frozen=True)
class SourcePlace:
    """A registry or a chart repository, or something in it. `kind` is "" for images."""

    kind: Literal["oci", "https", ""]
    host: str
    path: tuple[str, ...]

    def holds(self, other: SourcePlace) -> bool:
        """Whether the other is this place, or lies in it."""
        here = (self.kind, self.host, self.path)
        return here == (other.kind, other.host, other.path[: len(self.path)])


@dataclass(frozen=True)
class KnownSources:
    """Where charts and images may come from, besides what the tables name."""

    charts: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    @property
    def chart_places(self) -> list[SourcePlace]:
        """Every place of a chart, the tables' own first."""
        return [chart_place(each) for each in (*CHARTS, *self.charts)]

    @property
    def image_places(self) -> list[SourcePlace]:
        """Every place of an image, the tables' own first."""
        return [registry_place(each) for each in (*IMAGES, *self.images)]

    @property
    def kai_images(self) -> list[str]:
        """What the names of KAI's images may begin with, without a slash at the end."""
        return [*KAI_IMAGES, *(each.removesuffix("/") for each in self.images)]


def from_mirror(chart: str) -> bool:
    """Whether a chart is a package of the local mirror, which who runs the update names."""
    mirror = os.environ.get(MIRROR)
    return bool(mirror) and Path(chart).parent == Path(str(mirror)) and chart.endswith(".tgz")


def chart_place(name: str) -> SourcePlace:
    """Where a chart is: an OCI reference, or an https URL. Raises NoPlaceError."""
    if name.startswith(_OCI):
        host, path = _split(_without_version(name.removeprefix(_OCI)))
        return SourcePlace("oci", _host(host), _segments(path, _SEGMENT))
    if name.startswith(_HTTPS):
        host, path = _split(name.removeprefix(_HTTPS).removesuffix("/"))
        return SourcePlace("https", _host(host), _segments(path, _URL_SEGMENT))
    if name.startswith("http://"):
        raise NoPlaceError("is not encrypted on its way")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", name) and not name.startswith("file:"):
        raise NoPlaceError("begins with neither oci:// nor https://")
    raise NoPlaceError("is a path or a name on the machine that runs the update")


def image_place(name: str) -> SourcePlace:
    """Where an image is, as a container runtime reads its name. Raises NoPlaceError.

    A name whose first part is no host is one of Docker Hub.
    """
    first, path = _split(_without_version(name))
    if not path:
        return SourcePlace("", _HUB, ("library", *_segments([first], _SEGMENT)))
    place = _in_registry(first, path)
    if place.host == _HUB and len(place.path) == 1:
        return SourcePlace("", _HUB, ("library", *place.path))
    return place


def registry_place(name: str) -> SourcePlace:
    """Where the images are whose names begin so: `ghcr.io/loft-sh`. Raises NoPlaceError."""
    first, path = _split(name.removesuffix("/"))
    return _in_registry(first, path)


def is_tag(text: str) -> bool:
    """Whether a text is a tag or a digest and nothing that continues a name."""
    return _TAGS.fullmatch(text) is not None


def shown(name: str) -> str:
    """A name for a message; nothing of it where it may hold a password or a control character."""
    return name if _PLAIN.fullmatch(name) else "not written as a plain name"


def in_any(place: SourcePlace, places: Iterable[SourcePlace]) -> bool:
    """Whether one of the places holds it."""
    return any(each.holds(place) for each in places)


def _without_version(name: str) -> str:
    """An image or OCI reference without its tag and digest."""
    end = name.rfind("/") + 1
    last = re.match(r"[^:@]*", name[end:])
    bare = last[0] if last else ""
    rest = name[end + len(bare) :]
    if not _VERSION.fullmatch(rest):
        raise NoPlaceError("is not written as host/path, with at most a tag and a sha256 digest")
    return name[:end] + bare


def _in_registry(first: str, path: list[str]) -> SourcePlace:
    if "." in first or ":" in first or first == "localhost":
        return SourcePlace("", _host(first), _segments(path, _SEGMENT))
    return SourcePlace("", _HUB, _segments([first, *path], _SEGMENT))


def _split(name: str) -> tuple[str, list[str]]:
    first, *path = name.split("/")
    return first, path


def _host(host: str) -> str:
    if not _HOST.fullmatch(host):
        raise NoPlaceError("has no plain host in front: lower case, without a user or a path in it")
    return host


def _segments(path: list[str], allowed: re.Pattern[str]) -> tuple[str, ...]:
    if not all(allowed.fullmatch(part) for part in path):
        raise NoPlaceError("has a part that no name has: .., an empty one, or another character")
    return tuple(path)
