"""The tags of a repository in an OCI registry, read without an account.

The distribution specification's `/v2/NAME/tags/list`, page by page; a registry that wants a token
says where to get one, and gives it to anybody for what is public.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

SECONDS: Final = 5.0  # for each answer, and a few times that for all of them
_IN_ALL: Final = 20.0
_LARGEST: Final = 4 * 1024 * 1024  # bytes of an answer
_PAGE: Final = 1000
_LOCAL: Final = ("localhost", "127.0.0.1")
_NEXT: Final = re.compile(r'<([^>]+)>\s*;[^,]*rel="?next"?')
_PAIR: Final = re.compile(r'(\w+)="([^"]*)"')


class NoTags(Exception):  # noqa: N818 - its message is all a user sees
    """The registry cannot be asked. Its message says why, and completes "REGISTRY …"."""


def tags(reference: str, seconds: float = SECONDS) -> list[str]:
    """The tags of `oci://REGISTRY/NAME`. Raises NoTags.

    A registry of this machine is asked by http, as docker and helm do.
    """
    registry, _, name = reference.removeprefix("oci://").partition("/")
    scheme = "http" if registry.partition(":")[0] in _LOCAL else "https"
    url = f"{scheme}://{registry}/v2/{name}/tags/list?n={_PAGE}"
    until, found, header = time.monotonic() + _IN_ALL, [], dict[str, str]()
    while url:
        if time.monotonic() > until:
            raise NoTags(f"takes more than {_IN_ALL:g} s to list its tags")
        try:
            page, headers = _get(url, header, seconds)
        except _Unauthorized as wants:
            if header:
                raise NoTags("gives its tags to nobody without an account") from None
            header = {"Authorization": f"Bearer {_token(wants.challenge, seconds)}"}
            continue
        listed = page.get("tags") or []
        if not isinstance(listed, list):
            raise NoTags("answers with something that is no list of tags")
        found += [str(tag) for tag in listed]
        more = _NEXT.search(headers.get("Link", ""))
        url = urllib.parse.urljoin(url, more[1]) if more else ""
    return found


class _Unauthorized(Exception):  # noqa: N818
    def __init__(self, challenge: str) -> None:
        self.challenge = challenge


def _token(challenge: str, seconds: float) -> str:
    """What `WWW-Authenticate: Bearer realm="…",service="…",scope="…"` asks to fetch."""
    asked = dict(_PAIR.findall(challenge))
    realm = asked.pop("realm", "")
    if not challenge.lower().startswith("bearer ") or not realm.startswith(("https:", "http:")):
        raise NoTags("gives its tags to nobody without an account")
    wanted = {key: value for key, value in asked.items() if key in ("service", "scope")}
    try:
        answer, _ = _get(f"{realm}?{urllib.parse.urlencode(wanted)}", {}, seconds)
    except _Unauthorized:
        raise NoTags("gives its tags to nobody without an account") from None
    token = answer.get("token") or answer.get("access_token")
    if not isinstance(token, str):
        raise NoTags("answers with something that is no token")
    return token


def _get(url: str, header: Mapping[str, str], seconds: float) -> tuple[dict[str, Any], Any]:
    request = urllib.request.Request(url, headers={"Accept": "application/json", **header})
    try:
        with urllib.request.urlopen(request, timeout=seconds) as response:
            content = response.read(_LARGEST)
            read = json.loads(content)
            headers = response.headers
    except urllib.error.HTTPError as why:
        if why.code == HTTPStatus.UNAUTHORIZED:
            raise _Unauthorized(why.headers.get("WWW-Authenticate", "")) from None
        raise NoTags(f"answers {why.code} {why.reason}") from None
    except urllib.error.URLError as why:
        raise NoTags(f"cannot be reached ({why.reason})") from None
    except ValueError:
        raise NoTags("answers with something that is no JSON") from None
    except OSError as why:  # also a timeout while it answers
        raise NoTags(f"cannot be reached ({why})") from None
    if not isinstance(read, dict):
        raise NoTags("answers with something that is no object")
    return read, headers
