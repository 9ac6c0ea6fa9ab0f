"""The chart that a location names, and the one that a package on this machine contains.

An OCI reference ends with the chart's name, as `helm push` writes it. Helm pulls the release's
version from it, and refuses a tag that is another version. From a URL Helm installs whatever is
there and ignores the release's version, so the name of the file has to contain the version
(`LocateChart` and `ResolveChartVersion` in Helm 3).
"""

import posixpath
import re
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import yaml

_PACKAGE = re.compile(r"(?P<name>.+?)[-_](?P<version>v?\d+\.\d+\.\d+[^/]*)\.t(ar\.)?gz")
_METADATA = "Chart.yaml"
_MAX_METADATA_BYTES = 1_000_000  # usual are a few hundred


class NamedChart(NamedTuple):
    """A chart's name and version; the version is None if the location does not contain it."""

    name: str
    version: str | None


class UnreadableChartError(ValueError):
    """A package without exactly one readable Chart.yaml; the message completes "a chart which"."""


def chart_in(location: str) -> NamedChart:
    """The chart that a location names: a chart's name, OCI reference, URL, package or folder.

    What follows `?` or `#` does not count. An escaped path is unescaped, as a server does it.
    """
    path = unquote(re.split(r"[?#]", location, maxsplit=1)[0])
    if "://" not in location:
        path = path.rstrip("/")  # a folder
    last_segment = path.rpartition("/")[2]
    if location.startswith("oci://"):
        without_digest = last_segment.partition("@")[0]
        name, _, tag = without_digest.partition(":")
        return NamedChart(name, tag or None)
    package = _PACKAGE.fullmatch(last_segment)
    if package is None:
        return NamedChart(last_segment, None)
    return NamedChart(package["name"], package["version"])


def mismatch(location: str, names: tuple[str, ...], version: str) -> str | None:
    """What is wrong with the location of a chart, as the rest of "a chart which"; None if nothing.

    It has to name a chart of one of these names, at this version; "" stands for any version. Only a
    URL has to say a version. A wrong name is told before a wrong version. The text repeats nothing
    of the location, which may have a password.
    """
    chart = chart_in(location)
    if chart.name not in names:
        return f"is not called {' or '.join(names)}"
    if chart.version is not None:
        if version and not same_version(chart.version, version):
            return f"says another version than {version}"
        return None
    if "://" in location and not location.startswith("oci://"):
        return "says no version, and Helm installs whatever a URL has"
    return None


def same_version(one: str, other: str) -> bool:
    """Whether two texts are one version, be it with or without `v`, and with `+` or a tag's `_`."""
    return _as_tag(one) == _as_tag(other)


def _as_tag(version: str) -> str:
    """A version as an OCI tag spells it, without the `v`."""
    return version.removeprefix("v").replace("+", "_")


@cache
def packaged(path: str) -> NamedChart | None:
    """The chart in a local package or folder, by its Chart.yaml; None if nothing is at the path.

    Each path is read once in a process.

    Raises:
        UnreadableChartError: it does not have exactly one readable Chart.yaml.
    """
    location = Path(path)
    if not location.exists():
        return None  # Helm reports it
    try:
        if location.is_dir():
            texts = [(location / _METADATA).read_bytes()]
        else:
            texts = list(_metadata_in_archive(location))
        # Each is parsed, so that an unreadable one is refused, too.
        (metadata,) = [yaml.safe_load(text) for text in texts]
        return NamedChart(str(metadata["name"]), str(metadata["version"]))
    except (OSError, EOFError, tarfile.TarError, yaml.YAMLError, TypeError, KeyError, ValueError):
        raise UnreadableChartError(f"has not one readable {_METADATA}") from None


def _metadata_in_archive(package: Path) -> Iterator[bytes]:
    """The content of every file that Helm takes for the Chart.yaml, up to 10^6 bytes of each.

    Helm drops the first segment of each path. Raises OSError, EOFError, tarfile.TarError.
    """
    with tarfile.open(package) as archive:
        for member in archive:
            inner_path = member.name.replace("\\", "/").partition("/")[2]
            if posixpath.normpath(inner_path) != _METADATA:
                continue
            content = archive.extractfile(member)
            if content is not None:  # a file, not a folder
                yield content.read(_MAX_METADATA_BYTES)
