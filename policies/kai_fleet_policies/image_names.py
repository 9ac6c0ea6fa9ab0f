"""Every image, registry and chart that a chart's values name, as its templates put it together.

Keys are told by their names, so that one that a newer version brings is seen as well. What a name
is relative to differs by chart: vCluster has `registry` and `repository`, KAI one registry for all
and `name`, NVIDIA's charts a `repository` with `image`, or the whole name in either.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from kai_fleet.cluster.plain_yaml import OddYamlError, typed_documents
from kai_fleet.fleet.installed import ChartName
from kai_fleet.releases.sources import KAI_IMAGES, is_tag
from kai_fleet.values import UNKNOWN, get

# What a value names: an image, a registry with whatever is in it, a chart, only a version of one,
# or something that cannot be read.
Names = Literal["image", "registry", "chart", "tag", "unreadable", "unknown"]
Path = tuple[str, ...]

_NVIDIA: Final = "nvcr.io/nvidia"
# The registry and the image of vCluster's values where only one of them is written.
_OF_VCLUSTER: Final[Mapping[str, tuple[str, str]]] = {
    "controlPlane.statefulSet.image": ("ghcr.io", "loft-sh/vcluster-oss"),
    "controlPlane.distro.k8s.image": ("ghcr.io", "loft-sh/kubernetes"),
    "controlPlane.distro.k3s.image": ("docker.io", "rancher/k3s"),
    "controlPlane.backingStore.etcd.deploy.statefulSet.image": ("registry.k8s.io", "etcd"),
    "sync.toHost.pods.rewriteHosts.initContainer.image": ("docker.io", "library/alpine"),
}
# What is there to be run by the team's own pods, or is written to and not read from.
_USERS_OWN: Final = (
    ("experimental", "deploy", "vcluster", "manifests"),
    ("experimental", "deploy", "vcluster", "manifestsTemplate"),
    ("snapshots",),
)
_CHARTS_INSIDE: Final = ("experimental", "deploy", "vcluster", "helm")
_NO_NAMES: Final = re.compile(r"(pullpolicy|pullsecrets?)$")
_REGISTRY: Final = re.compile(r"(registry|repository|^repo)$")
_TAG: Final = re.compile(r"(^|image)(tag|digest|version)$")
_YAML: Final = frozenset({"overwritemanifests", "manifests", "manifeststemplate"})
_IN_A_FLAG: Final = re.compile(
    r"-{1,2}([\w.-]*(?:image|registry|repository)[\w.-]*)(?:=(.*))?", re.S
)


@dataclass(frozen=True)
class Named:
    """One name among the values: `key` is where it stands, `name` what it comes to."""

    key: str
    what: Names
    name: str


def names(chart: ChartName, values: Mapping[str, object]) -> Iterator[Named]:
    """Everything that the values of a chart name, in the order of the keys."""
    yield from _Reader(chart, values).mapping(values, ())


class _Reader:
    """The values of one chart; two of them are what others are relative to."""

    def __init__(self, chart: ChartName, values: Mapping[str, object]) -> None:
        self.chart = chart
        registry = get(values, "global", "registry")
        everywhere = get(values, "controlPlane", "advanced", "defaultImageRegistry")
        self.of_kai = registry if isinstance(registry, str) and registry else KAI_IMAGES[-1]
        self.of_vcluster = everywhere if isinstance(everywhere, str) else ""

    def mapping(self, value: Mapping[str, object], path: Path) -> Iterator[Named]:
        """What a mapping names, and what is below it."""
        parts, rest = self._parts(value, path)
        yield from self._whole(parts, path)
        for key, item in rest.items():
            yield from self._below(str(key), item, (*path, str(key)))

    def _parts(
        self, value: Mapping[str, object], path: Path
    ) -> tuple[dict[str, str], dict[str, object]]:
        """The parts of one image's name, and everything else."""
        if self.chart != "gpu" and not _is_image(path):
            return {}, dict(value)  # each is a name of its own
        own = {"registry", "repository", "image" if self.chart == "gpu" else "name"}
        own |= {"name"} if _is_image(path) else set()
        # A null takes a chart's own part away.
        parts = {
            key: item or ""
            for key, item in value.items()
            if key in own and (isinstance(item, str) or (item is None and key != "name"))
        }
        return parts, {key: item for key, item in value.items() if key not in parts}

    def _whole(self, parts: Mapping[str, str], path: Path) -> Iterator[Named]:
        if not parts:
            return
        key = _dotted((*path, next(iter(parts))))
        registry, repository = parts.get("registry"), parts.get("repository")
        image, name = parts.get("image"), parts.get("name")
        if self.chart == "vcluster":
            for each in self._of_vcluster(_dotted(path), registry, repository or name):
                yield Named(key, "image", each)
        elif self.chart == "kai":
            home = registry or self.of_kai
            relative = "/".join(it for it in (repository, name) if it)
            yield Named(key, "image" if relative else "registry", _joined(home, relative))
        elif image is None:
            whole = _joined(registry, repository, name)
            yield Named(key, "registry" if whole else "image", whole)
        elif repository or registry:
            yield Named(key, "image", _joined(registry, repository, image))
        elif repository == "" or "/" in image or any(part.startswith("[") for part in path):
            yield Named(key, "image", image)
        else:
            yield Named(key, "image", _joined(_NVIDIA, image))

    def _of_vcluster(
        self, path: str, registry: str | None, repository: str | None
    ) -> Iterator[str]:
        home, image = _OF_VCLUSTER.get(path, ("ghcr.io", ""))
        if self.of_vcluster:
            yield _joined(self.of_vcluster, repository or image)
        if registry is not None or not self.of_vcluster:
            yield _joined(home if registry is None else registry, repository or image)

    def _below(self, key: str, value: object, path: Path) -> Iterator[Named]:
        low = re.sub(r"[^a-z]", "", key.lower())
        where = _dotted(path)
        if _NO_NAMES.search(low) or any(path[: len(own)] == own for own in _USERS_OWN):
            return
        if value is UNKNOWN and ("image" in low or _REGISTRY.search(low)):
            yield Named(where, "unknown", "")
        if low == "translateimage" and isinstance(value, Mapping):
            for name, image in value.items():
                yield from _image(_dotted((*path, str(name))), image)
        elif isinstance(value, Mapping):
            inside = key == "chart" and path[:4] == _CHARTS_INSIDE
            yield from _chart_inside(value, path) if inside else self.mapping(value, path)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from self._list(low, value, path)
        elif isinstance(value, str):
            yield from self._text(low, value, path)

    def _text(self, low: str, value: str, path: Path) -> Iterator[Named]:
        where = _dotted(path)
        if path[:4] == _CHARTS_INSIDE:
            # Its values are as much the users' own as the manifests beside it.
            if low == "bundle":
                yield Named(where, "unreadable", "")
        elif low in _YAML:
            yield from _in_yaml(value, where)
        elif _TAG.search(low):
            if not is_tag(value):
                yield Named(where, "tag", value)
        elif value and (_REGISTRY.search(low) or low.endswith("mirror")):
            yield Named(where, "registry", value)
        elif "image" in low or path[-2:] == ("artifacts", "url"):
            yield from _image(where, value)

    def _list(self, low: str, value: Sequence[object], path: Path) -> Iterator[Named]:
        for n, item in enumerate(value):
            place = (*path, f"[{n}]")
            if isinstance(item, Mapping):
                name, content = item.get("name"), item.get("value")
                if isinstance(name, str) and isinstance(content, str):  # a variable
                    yield from self._below(name, content, (*place, "value"))
                yield from self.mapping(item, place)
            elif isinstance(item, str) and item.lstrip().startswith("-"):
                yield from self._flag(item, value[n + 1 : n + 2], place)
            elif isinstance(item, str):
                yield from self._text(low, item, place)
            elif isinstance(item, Sequence):
                yield from self._list(low, item, place)

    def _flag(self, item: str, following: Sequence[object], path: Path) -> Iterator[Named]:
        tokens = item.split()
        after = [*tokens[1:], *(it for it in following if isinstance(it, str))]
        for token, later in zip(tokens, [*after, ""], strict=False):
            match = _IN_A_FLAG.fullmatch(token)
            if match:
                value = later if match[2] is None else match[2]
                low = re.sub(r"[^a-z]", "", match[1].lower())
                if not value.startswith("-"):
                    yield from self._text(low, value, path)


def _in_yaml(text: str, where: str) -> Iterator[Named]:
    """What manifests name."""
    try:
        found = list(_Reader("vcluster", {}).mapping({"documents": typed_documents(text)}, ()))
    except (OddYamlError, RecursionError):
        yield Named(where, "unreadable", "")
        return
    for named in found:
        yield replace(named, key=where)


def _chart_inside(value: Mapping[str, object], path: Path) -> Iterator[Named]:
    """A chart that the vCluster installs inside: an OCI one is `repo` and `name` together."""
    repo, name = value.get("repo"), value.get("name")
    whole = "/".join(str(it).rstrip("/") for it in (repo, name) if it)
    if whole:
        yield Named(_dotted((*path, "repo" if repo else "name")), "chart", whole)


def _image(where: str, value: object) -> Iterator[Named]:
    if isinstance(value, str) and value:
        yield Named(where, "image", value)


def _is_image(path: Path) -> bool:
    return bool(path) and "image" in path[-1].lower()


def _joined(*parts: str | None) -> str:
    return "/".join(part.removesuffix("/") for part in parts if part)


def _dotted(path: Path) -> str:
    return ".".join(path).replace(".[", "[")
