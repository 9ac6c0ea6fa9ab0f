"""The tags of a repository in an OCI registry, read without an account.

The distribution specification's `/v2/NAME/tags/list`, page by page; a registry that wants a token
says where to get one, and needs no account for what is public.
"""

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


class NoTagsError(Exception):
    """The registry gives no tags. The message says why, and completes "REGISTRY …"."""


class _UnauthorizedError(NoTagsError):
    def __init__(self, challenge: str) -> None:
        super().__init__("gives its tags to nobody without an account")
        self.challenge = challenge


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
