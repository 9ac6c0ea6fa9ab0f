"""What is newer upstream than the tables here: a newer patch of a line, or a newer line.

A project's versions are the tags of a repository in an OCI registry, read without an account: the
distribution specification's `/v2/NAME/tags/list`, page by page. A registry that wants a token says
where to get one, and needs no account for what is public.
"""

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kubectl_fleet.releases import KAI, RETRACTED, VCLUSTER, taken_for, version_key
from kubectl_fleet.releases.tables import KAI_CHART

TABLES: Final[Mapping[str, Mapping[str, Any]]] = {"KAI": KAI, "vCluster": VCLUSTER}
# The chart of vCluster is in no OCI registry; each of its versions has an image of that version.
HOMES: Final = {"KAI": KAI_CHART, "vCluster": "oci://ghcr.io/loft-sh/vcluster-oss"}
# Versions that were seen upstream and not tried with this program: a newer one in a registry is
# proposed as a pull request by .github/workflows/releases.yml.
UNTESTED: Final = Path(__file__).with_name("untested_versions.json")
_FINAL: Final = re.compile(r"v?(\d+\.\d+\.\d+)")
SECONDS: Final = 5.0  # for each answer, and a few times that for all of them
_IN_ALL: Final = 20.0
_LARGEST: Final = 4 * 1024 * 1024  # bytes of an answer
_PAGE: Final = 1000
_LOCAL: Final = ("localhost", "127.0.0.1")
_NEXT: Final = re.compile(r'<([^>]+)>\s*;[^,]*rel="?next"?')
_PAIR: Final = re.compile(r'(\w+)="([^"]*)"')


class NoTagsError(Exception):
    """The registry gives no tags. The message says why, and completes "REGISTRY …"."""


class _UnauthorizedError(NoTagsError):
    def __init__(self, challenge: str) -> None:
        super().__init__("gives its tags to nobody without an account")
        self.challenge = challenge


@dataclass(frozen=True)
class NewerVersions:
    """The newer versions of a project, oldest first; or, in `silent`, why none are known."""

    project: str
    newer: tuple[str, ...] = ()
    silent: str = ""

    @property
    def words(self) -> str:
        """One sentence."""
        newer = f"newer than what is known here: {', '.join(self.newer)}"
        nothing = "nothing newer than what is known here"
        return f"{self.project} upstream: {self.silent or (newer if self.newer else nothing)}"


def look(homes: Mapping[str, str]) -> list[NewerVersions]:
    """Ask the registries of all projects at once."""
    with ThreadPoolExecutor(4) as pool:
        return [*pool.map(_ask, homes, homes.values())]


def _ask(project: str, reference: str) -> NewerVersions:
    try:
        published = tags(reference)
    except NoTagsError as error:
        host = reference.removeprefix("oci://").partition("/")[0]
        return NewerVersions(project, silent=f"{host} {error}")
    return NewerVersions(project, tuple(newer(published, TABLES[project])))


def newer(tags: Iterable[str], known: Iterable[str]) -> list[str]:
    """The newest final version of each line that is known or newer, where it is newer than the
    known ones. Pre-releases and what was retracted are none.
    """
    lines = _newest_by_line(known)
    last = max(lines)
    final = _newest_by_line(f"v{it[1]}" for tag in tags if (it := _FINAL.fullmatch(tag)))
    versions = [
        version
        for line, version in final.items()
        if line > last or (line in lines and version_key(version) > version_key(lines[line]))
    ]
    return sorted(versions, key=version_key)


def untested() -> dict[str, list[str]]:
    """The versions that were seen and not tried, by project, without what is in a table by now."""
    listed = json.loads(UNTESTED.read_text(encoding="utf-8"))
    return {
        project: [version for version in listed.get(project, ()) if taken_for(table, version)]
        for project, table in TABLES.items()
    }


def _newest_by_line(versions: Iterable[str]) -> dict[tuple[int, ...], str]:
    wanted = (version for version in versions if version != RETRACTED)
    return {version_key(version)[:2]: version for version in sorted(wanted, key=version_key)}


def tags(reference: str) -> list[str]:
    """The tags of `oci://REGISTRY/NAME`. Raises NoTagsError.

    A registry of this machine is asked by http, as docker and helm do.
    """
    registry, _, name = reference.removeprefix("oci://").partition("/")
    scheme = "http" if registry.partition(":")[0] in _LOCAL else "https"
    url = f"{scheme}://{registry}/v2/{name}/tags/list?n={_PAGE}"
    until, header, every = time.monotonic() + _IN_ALL, dict[str, str](), list[str]()
    while url:
        if time.monotonic() > until:
            raise NoTagsError(f"takes more than {_IN_ALL:g} s to list its tags")
        try:
            page, headers = _get(url, header)
        except _UnauthorizedError as error:
            if header:
                raise
            header = {"Authorization": f"Bearer {_token(error)}"}
            continue
        listed = page.get("tags") or []
        if not isinstance(listed, list):
            raise NoTagsError("answers with something that is no list of tags")
        every += map(str, listed)
        more = _NEXT.search(headers.get("Link", ""))
        url = urllib.parse.urljoin(url, more[1]) if more else ""
    return every


def _token(error: _UnauthorizedError) -> str:
    """What `WWW-Authenticate: Bearer realm="…",service="…",scope="…"` says to fetch."""
    pairs = dict(_PAIR.findall(error.challenge))
    realm = pairs.get("realm", "")
    bearer = error.challenge.lower().startswith("bearer ")
    if not bearer or not realm.startswith(("https:", "http:")):
        raise error
    query = {key: value for key, value in pairs.items() if key in ("service", "scope")}
    answer, _ = _get(f"{realm}?{urllib.parse.urlencode(query)}", {})
    token = answer.get("token") or answer.get("access_token")
    if not isinstance(token, str):
        raise NoTagsError("answers with something that is no token")
    return token


def _get(url: str, header: Mapping[str, str]) -> tuple[dict[str, Any], Any]:
    request = urllib.request.Request(url, headers={"Accept": "application/json", **header})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            content, headers = json.loads(response.read(_LARGEST)), response.headers
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.UNAUTHORIZED:
            raise _UnauthorizedError(error.headers.get("WWW-Authenticate", "")) from None
        raise NoTagsError(f"answers {error.code} {error.reason}") from None
    except ValueError:
        raise NoTagsError("answers with something that is no JSON") from None
    except OSError as error:  # also a timeout while it answers
        raise NoTagsError(f"cannot be reached ({getattr(error, 'reason', error)})") from None
    if not isinstance(content, dict):
        raise NoTagsError("answers with something that is no object")
    return content, headers
