"""Where charts and images come from: the places that the tables use, and what lies in a place.

A place is a text: `oci://ghcr.io/loft-sh`, `https://charts.loft.sh`, and of images
`ghcr.io/loft-sh`. Whole path segments are compared: `ghcr.io/loft-sh-other` is not in
`ghcr.io/loft-sh`. What is not written in the one plain way is no name at all, so that no spelling
means one place here and another to Helm or to a container runtime.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kai_fleet.releases import GPU_PROVIDERS, KAI, VCLUSTER_REPOSITORY

# A directory of packaged charts, `<name>-<version>.tgz`, used in place of the registries:
# for air-gapped machines, and for the sandbox.
MIRROR: Final = "KAI_FLEET_CHARTS"

_HUB: Final = "docker.io"
# Where KAI's charts are its images are, too.
KAI_IMAGES: Final = tuple(dict.fromkeys(each.images for each in KAI.values()))
CHARTS: Final = (
    *(f"oci://{place}" for place in KAI_IMAGES),
    VCLUSTER_REPOSITORY,
    *(each.repository for each in GPU_PROVIDERS.values() if each.repository),
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
_HOST: Final = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?"
_SEGMENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_URL_SEGMENT: Final = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._~+-]+"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = r"sha256:[0-9a-f]{64}"
_VERSION: Final = rf"(?::{_TAG})?(?:@{_DIGEST})?"
_OCI: Final = re.compile(rf"(oci://{_HOST}(?:/{_SEGMENT})*){_VERSION}")
_HTTPS: Final = re.compile(rf"(https://{_HOST}(?:/{_URL_SEGMENT})*)/?")
_REGISTRY: Final = re.compile(rf"({_HOST}(?:/{_SEGMENT})*)/?")
_ON_HOST: Final = re.compile(rf"({_HOST}(?:/{_SEGMENT})+){_VERSION}")
_ON_HUB: Final = re.compile(rf"({_SEGMENT}(?:/{_SEGMENT})*){_VERSION}")
# A tag or a digest, and nothing that continues a name.
TAGS: Final = re.compile(rf":?@?(?:{_DIGEST}|{_TAG}(?:@{_DIGEST})?)?")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._/:+~-]{1,200}")


class InvalidReferenceError(ValueError):
    """A reference that names no registry; the message completes "… is X, which"."""


@dataclass(frozen=True)
class KnownSources:
    """Where charts and images may come from, besides what the tables name; a `mirror` has both."""

    charts: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    mirror: tuple[str, ...] = ()

    @property
    def chart_places(self) -> list[str]:
        """Every place of a chart, the tables' own first."""
        mirror = (f"oci://{each}" for each in self.mirror)
        return [chart_place(each) for each in (*CHARTS, *self.charts, *mirror)]

    @property
    def image_places(self) -> list[str]:
        """Every place of an image, the tables' own first."""
        return [registry_place(each) for each in (*IMAGES, *self.images, *self.mirror)]

    @property
    def kai_images(self) -> list[str]:
        """What the names of KAI's images may begin with, without a slash at the end."""
        mirror = (mirrored(each, place) for each in self.mirror for place in KAI_IMAGES)
        return [*KAI_IMAGES, *(each.removesuffix("/") for each in self.images), *mirror]


def chart_place(name: str) -> str:
    """Where a chart is: an OCI reference, or an https URL. Raises InvalidReferenceError."""
    for scheme, pattern in (("oci://", _OCI), ("https://", _HTTPS)):
        if name.startswith(scheme):
            return _place(pattern, name)
    raise InvalidReferenceError("begins with neither oci:// nor https://")


def image_place(name: str) -> str:
    """Where an image is, as a container runtime reads its name. Raises InvalidReferenceError.

    A name whose first part is no host is one of Docker Hub.
    """
    place = _place(_ON_HOST, name) if _has_host(name) else f"{_HUB}/{_place(_ON_HUB, name)}"
    host, _, path = place.partition("/")
    return f"{host}/library/{path}" if host == _HUB and "/" not in path else place


def registry_place(name: str) -> str:
    """The place of all images with this prefix: `ghcr.io/loft-sh`. Raises InvalidReferenceError."""
    place = _place(_REGISTRY, name)
    return place if _has_host(f"{place}/") else f"{_HUB}/{place}"


def mirrored(mirror: str, place: str) -> str:
    """Where a mirror has the images of a place: below it, at the path that they have on their own
    host.
    """
    return f"{mirror}/{place.partition('/')[2]}".removesuffix("/")


def shown(name: str) -> str:
    """A name for a message; nothing of it where it may hold a password or a control character."""
    return name if _PLAIN.fullmatch(name) else "not written as a plain name"


def in_any(place: str, places: Iterable[str]) -> bool:
    """Whether one of the places holds it."""
    return any(f"{place}/".startswith(f"{each}/") for each in places)


def _has_host(name: str) -> bool:
    first, slash, _ = name.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost")


def _place(pattern: re.Pattern[str], name: str) -> str:
    """The name without its tag and digest."""
    if match := pattern.fullmatch(name):
        return match[1]
    raise InvalidReferenceError(
        "is no plain name: a host in lower case without a user, then at most a path without .. or"
        " empty parts, a tag and a sha256 digest"
    )
