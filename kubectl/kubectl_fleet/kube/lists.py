"""Whole collections of a cluster: a list request for each kind, several at once."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.errors import RefusedError, UnreachableError


def lists(
    api: Api, paths: Mapping[str, str], at_once: int, namespace: str | None = None
) -> tuple[dict[str, list[Any]], dict[str, RefusedError]]:
    """The objects of each kind by its path, and of the other kinds why they were refused.

    `{}` in a path is where the one `namespace` goes, where it is not all. Each collection comes in
    one answer, as it is now: what pages cost is more than they save. Raises UnreachableError where
    the cluster does not answer, or does not accept the credentials.
    """
    where = f"namespaces/{namespace}/" if namespace else ""

    def answer(path: str) -> list[Any] | RefusedError:
        try:
            return api.get(path.format(where)).get("items") or []
        except RefusedError as error:
            refuse_unauthorized(error)
            return error

    with ThreadPoolExecutor(max_workers=at_once) as pool:
        answers = dict(zip(paths, pool.map(answer, paths.values()), strict=True))
    refused = {kind: it for kind, it in answers.items() if isinstance(it, RefusedError)}
    found = {kind: it for kind, it in answers.items() if not isinstance(it, RefusedError)}
    return found, refused


def refuse_unauthorized(error: RefusedError) -> None:
    """Raise UnreachableError for credentials that nobody accepts: then every kind is refused."""
    if error.status == HTTPStatus.UNAUTHORIZED:
        raise UnreachableError("it does not accept the credentials (401)") from None
