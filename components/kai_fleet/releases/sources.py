"""Where charts and images come from: the places in the tables, and whether one is in another.

A place is the text of a repository or registry: `oci://ghcr.io/loft-sh`, `https://charts.loft.sh`,
and for images `ghcr.io/loft-sh`. Whole path segments are compared: `ghcr.io/loft-sh-other` is not
in `ghcr.io/loft-sh`. A name that is not spelt in the one plain way is refused, so that no spelling
means one place here and another to Helm or a container runtime.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kai_fleet.releases import GPU_PROVIDERS, KAI, VCLUSTER_REPOSITORY

# The environment variable with a folder of packaged charts, `<name>-<version>.tgz`, that is used in
# place of the registries: for air-gapped machines, and for the sandbox.
MIRROR = "KAI_FLEET_CHARTS"

_HUB = "docker.io"
# KAI's images are in the registry of its charts, in two of them by version.
KAI_IMAGES = tuple(dict.fromkeys(release.images for release in KAI.values()))
CHARTS = (
    *(f"oci://{path}" for path in KAI_IMAGES),
    VCLUSTER_REPOSITORY,
    *(provider.repository for provider in GPU_PROVIDERS.values() if provider.repository),
)
# The images of backups, by the argument of VirtualClusterBackup.
BACKUP_IMAGES = {
    "kubectl_image": f"{_HUB}/alpine/k8s:1.34.1",
    "restic_image": f"{_HUB}/restic/restic:0.18.1",
}
# The images that the charts of the tables use by default.
IMAGES = (
    *KAI_IMAGES,
    "ghcr.io/loft-sh",
    "nvcr.io/nvidia",
    "registry.k8s.io",
    f"{_HUB}/coredns/coredns",
    f"{_HUB}/library/alpine",
    f"{_HUB}/rancher/k3s",
    f"{_HUB}/kindest/node",
    f"{_HUB}/alpine/k8s",
    f"{_HUB}/restic/restic",
)

_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?"
_SEGMENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_URL_SEGMENT = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._~+-]+"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}"
_VERSION = rf"(?::{_TAG})?(?:@{_DIGEST})?"
_OCI = re.compile(rf"(oci://{_HOST}(?:/{_SEGMENT})*){_VERSION}")
_HTTPS = re.compile(rf"(https://{_HOST}(?:/{_URL_SEGMENT})*)/?")
_REGISTRY = re.compile(rf"({_HOST}(?:/{_SEGMENT})*)/?")
_IMAGE = re.compile(rf"({_HOST}(?:/{_SEGMENT})+){_VERSION}")
# A tag or a digest, and nothing that would continue a name.
TAGS = re.compile(rf":?@?(?:{_DIGEST}|{_TAG}(?:@{_DIGEST})?)?")
_PLAIN = re.compile(r"[A-Za-z0-9._/:+~-]{1,200}")


class InvalidReferenceError(ValueError):
    """A name that is no reference to a chart or image; the message completes "is X, which"."""


@dataclass(frozen=True)
class KnownSources:
    """Where charts and images of a stack may come from, besides the places of the tables."""

    charts: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    mirror: tuple[str, ...] = ()
    """Registries that have charts and images."""

    @property
    def chart_places(self) -> list[str]:
        """All places of charts, those of the tables first. Raises InvalidReferenceError."""
        names = [*CHARTS, *self.charts]
        names += [f"oci://{registry}" for registry in self.mirror]
        return [chart_place(name) for name in names]

    @property
    def image_places(self) -> list[str]:
        """All places of images, those of the tables first. Raises InvalidReferenceError."""
        return [registry_place(name) for name in (*IMAGES, *self.images, *self.mirror)]

    @property
    def kai_images(self) -> list[str]:
        """Prefixes that names of KAI's images may have, without a slash at the end.

        They are not checked, and not completed with Docker Hub.
        """
        prefixes = [*KAI_IMAGES]
        prefixes += [name.removesuffix("/") for name in self.images]
        for registry in self.mirror:
            prefixes += [mirrored(registry, path) for path in KAI_IMAGES]
        return prefixes


def chart_place(name: str) -> str:
    """The place of a chart: an OCI reference or https URL without tag, digest and last slash.

    Raises:
        InvalidReferenceError: it has another scheme, or is not spelt in the plain way.
    """
    if name.startswith("oci://"):
        return _matched(_OCI, name)
    if name.startswith("https://"):
        return _matched(_HTTPS, name)
    raise InvalidReferenceError("begins with neither oci:// nor https://")


def image_place(name: str) -> str:
    """The place of an image, as a container runtime reads its name, without tag and digest.

    A name whose first segment is no host is in Docker Hub: `nginx` is `docker.io/library/nginx`.

    Raises:
        InvalidReferenceError: it is not spelt in the plain way.
    """
    full_name = name if _has_host(name) else f"{_HUB}/{name}"
    place = _matched(_IMAGE, full_name)
    host, _, path = place.partition("/")
    if host == _HUB and "/" not in path:
        return f"{_HUB}/library/{path}"
    return place


def registry_place(name: str) -> str:
    """The place of all images with a prefix: `ghcr.io/loft-sh`, or `rancher` in Docker Hub.

    Raises:
        InvalidReferenceError: it is not spelt in the plain way.
    """
    place = _matched(_REGISTRY, name)
    return place if _has_host(f"{place}/") else f"{_HUB}/{place}"


def mirrored(mirror: str, place: str) -> str:
    """The place of images in a mirror: below it, at the path that they have in their registry.

    It is the mirror itself for a `place` that is only a host. `mirror` has no slash at the end.
    """
    path = place.partition("/")[2]
    return f"{mirror}/{path}".removesuffix("/")


def shown(name: str) -> str:
    """A name for a message: unless it is plain, none of it, as it may contain a password."""
    return name if _PLAIN.fullmatch(name) else "not written as a plain name"


def in_any(place: str, places: Iterable[str]) -> bool:
    """Whether a place is one of these, or below one of them."""
    return any(f"{place}/".startswith(f"{parent}/") for parent in places)


def _has_host(name: str) -> bool:
    """Whether the first segment of a path is a host, as container runtimes decide it."""
    first, slash, _ = name.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost")


def _matched(pattern: re.Pattern[str], name: str) -> str:
    """The first group of a pattern in a name. Raises InvalidReferenceError if it does not match."""
    match = pattern.fullmatch(name)
    if match is None:
        raise InvalidReferenceError(
            "is no plain name: a host in lower case without a user, then at most a path without .."
            " or empty parts, a tag and a sha256 digest"
        )
    return match[1]
