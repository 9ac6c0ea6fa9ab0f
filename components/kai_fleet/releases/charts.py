"""What a chart is by its location, and by its own Chart.yaml where that is at hand.

Of an OCI reference the last part of the path is the name, as `helm push` writes it, and Helm pulls
the release's version, refusing a tag that is another. At a URL Helm installs whatever is there: the
release's version counts for nothing, so the file's name has to say both (`LocateChart` and
`ResolveChartVersion` in Helm 3).
"""

import posixpath
import re
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import yaml

_PACKAGE: Final = re.compile(r"(?P<name>.+?)[-_](?P<version>v?\d+\.\d+\.\d+[^/]*)\.t(ar\.)?gz")
_METADATA: Final = "Chart.yaml"
_LARGEST: Final = 1_000_000  # bytes of a Chart.yaml, which has a few hundred


class NamedChart(NamedTuple):
    """A chart's name and version; the version is None where nothing says it."""

    name: str
    version: str | None


class UnreadableChartError(ValueError):
    """Not one readable Chart.yaml; the message completes "a chart which"."""


def named(location: str) -> NamedChart:
    """The chart that a location says it has: a name, OCI reference, URL, package or folder.

    Never what stands behind `?` or `#`, and of an escaped path what the server makes of it.
    """
    path = unquote(re.split(r"[?#]", location, maxsplit=1)[0])
    if "://" not in location:
        path = path.rstrip("/")  # of a folder
    last = path.rpartition("/")[2]
    if location.startswith("oci://"):
        name, _, tag = last.partition("@")[0].partition(":")
        return NamedChart(name, tag or None)
    package = _PACKAGE.fullmatch(last)
    return NamedChart(*package.group("name", "version")) if package else NamedChart(last, None)


def mismatch(location: str, names: tuple[str, ...], version: str) -> str | None:
    """What is wrong with the location of a chart of one of these names, at a version unless that
    is empty; None where nothing is.

    It completes "a chart which". It repeats nothing of the location, which may hold a password.
    """
    found = named(location)
    if found.name not in names:
        return f"is not called {' or '.join(names)}"
    if found.version is not None:
        differs = version and not same_version(found.version, version)
        return f"says another version than {version}" if differs else None
    by_url = "://" in location and not location.startswith("oci://")
    return "says no version, and Helm installs whatever a URL has" if by_url else None


def same_version(one: str, other: str) -> bool:
    """Whether two texts are one version: with a `v` or without, and `_` for `+`, as in a tag."""
    plain = [text.removeprefix("v").replace("+", "_") for text in (one, other)]
    return plain[0] == plain[1]


@cache
def packaged(path: str) -> NamedChart | None:
    """What the Chart.yaml of a local package or folder says; None where nothing is at the path.

    Raises UnreadableChartError.
    """
    place = Path(path)
    if not place.exists():
        return None  # Helm says so
    try:
        folder = place / _METADATA
        texts = [folder.read_bytes()] if place.is_dir() else [*_in_archive(place)]
        (metadata,) = (yaml.safe_load(text) for text in texts)
        return NamedChart(str(metadata["name"]), str(metadata["version"]))
    except (OSError, EOFError, tarfile.TarError, yaml.YAMLError, TypeError, KeyError, ValueError):
        raise UnreadableChartError(f"has not one readable {_METADATA}") from None


def _in_archive(package: Path) -> Iterator[bytes]:
    """Every file that Helm takes for the Chart.yaml: it drops the first part of each path."""
    with tarfile.open(package) as archive:
        for member in archive:
            path = posixpath.normpath(member.name.replace("\\", "/").partition("/")[2])
            content: Any = archive.extractfile(member) if path == _METADATA else None
            if content is not None:
                yield content.read(_LARGEST)
