"""`fleet releases`: the versions known here, those upstream, and where a team could go."""

import http.client
import itertools
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from kai_fleet import releases as known
from kai_fleet.releases import tables, version_key
from kai_fleet.releases.transitions import kai_transition
from kai_fleet.values import value_at
from kai_fleet_cli.commands.options import AsJson, print_json
from kai_fleet_cli.display.terminal import say

TABLES: Final[Mapping[str, Mapping[str, Any]]] = {"KAI": known.KAI, "vCluster": known.VCLUSTER}
# The chart of vCluster is in no OCI registry; each of its versions has an image of that version.
HOMES: Final = {"KAI": tables.KAI_CHART, "vCluster": "oci://ghcr.io/loft-sh/vcluster-oss"}
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


def newer(published: Iterable[str], table: Iterable[str]) -> list[str]:
    """The newest final version of each line that a table has or that is newer, where it is newer
    than those of the table. Pre-releases and what was retracted are none.
    """
    lines = _newest_by_line(table)
    last = max(lines)
    final = _newest_by_line(f"v{it[1]}" for tag in published if (it := _FINAL.fullmatch(tag)))
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
        project: [version for version in listed.get(project, ()) if known.taken_for(table, version)]
        for project, table in TABLES.items()
    }


def _newest_by_line(versions: Iterable[str]) -> dict[tuple[int, ...], str]:
    wanted = (version for version in versions if version != known.RETRACTED)
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
    except http.client.HTTPException:
        raise NoTagsError("answers with something that is no HTTP") from None
    if not isinstance(content, dict):
        raise NoTagsError("answers with something that is no object")
    return content, headers


def releases(
    stack: Annotated[
        str | None, typer.Option("--stack", "-s", help="Also what its teams run and could go to.")
    ] = None,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Also what is newer in the projects' registries.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The versions of KAI and vCluster that are known here, and how long each gets fixes.

    A registry that cannot be reached is said in a sentence, and is no error.
    """
    answers = look(HOMES) if upstream else []
    if as_json:
        print_json(
            {
                "known": {project: list(table) for project, table in TABLES.items()},
                "seen": untested(),
                "upstream": [asdict(answer) for answer in answers],
            }
        )
        return
    out, words = Console(), (answer.words for answer in answers)
    for line in itertools.chain(_known(), words, _teams(stack) if stack else ()):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def _known() -> Iterator[str]:
    listed = {
        "KAI": {it: known.support(it).words for it in (*known.KAI, known.RETRACTED)},
        "vCluster": {it: known.vcluster_support(it).words for it in known.VCLUSTER},
    }
    for project, table in TABLES.items():
        for version in table:
            listed[project][version] += _caveat(table, version)
    listed["vCluster"][known.DEFAULT_VCLUSTER] += "; what a stack gets that names none"
    for project, versions in untested().items():
        for version in versions:
            like = known.taken_for(TABLES[project], version)
            told = f"not tried with this program; untested: true takes it for {like}"
            listed[project][version] = told
        yield from (f"{project} {it:<9} {words}" for it, words in listed[project].items())
    yield "A newer version of either can be tried with untested: true beside its version."


def _caveat(table: Mapping[str, known.KaiRelease | known.VclusterRelease], version: str) -> str:
    caveat = table[version].caveat
    return caveat and f"; not advised: {caveat}"


def _teams(stack: str) -> Iterator[str]:
    """What each team runs, or where the engine does not answer, what its file says."""
    from kai_fleet_cli.teams import connect, lookup

    platform = lookup.platform(stack)
    connected = connect.to_platform(platform)
    states, silent = connected.states(platform)
    for note in (*silent, *filter(None, [connected.note])):
        say(f"- {note}")
    running = {name: it for state in states.values() for name, it in state.versions.items()}
    written = {"KAI of the host": value_at(platform.raw, "kai.version")}
    written |= {name: place.version for name, place in sorted(platform.teams.items())}
    for name, wanted in written.items():
        version = running.get(name) or wanted
        if isinstance(version, str) and version in known.KAI:
            yield _way(name, "runs" if name in running else "is to run", version)


def _way(name: str, verb: str, version: str) -> str:
    runs, support = f"{name} {verb} KAI {version}", known.support(version)
    if to := known.advised(known.KAI, version):
        way = kai_transition(known.kai(version), known.kai(to))
        first = ", so the release is replaced" if way.kind == "replace" else ""
        return f"{runs} ({support.words}); {way.why}{first}"
    if caveat := _caveat(known.KAI, version):
        return f"{runs} ({support.words}{caveat})"
    if support.maintained:
        return f"{runs}, the newest maintained one"
    return f"{runs} ({support.words}); {known.advice(known.KAI, version)}"
