"""Asking a cluster again and again, until what is wanted holds or the time is up."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable

from kubernetes import client

from provider.cluster_client import UNUSABLE, cluster_client
from provider.http_api import UNANSWERED, HttpApi, complaint

# What is still missing, one phrase each; none means ready.
Missing = Callable[[], list[str]]
_EVERY = 0.25  # seconds between two questions
_NEWS = 5.0  # seconds between two lines of progress


class NotReady(Exception):  # noqa: N818 - what it is, in the words of its message
    """The time is up, or the cluster cannot be asked at all."""


def cluster() -> client.ApiClient:
    """A client from PROBE_KUBECONFIG (a kubeconfig's content) or PROBE_CONTEXT (a name).

    Raises NotReady when neither can be read.
    """
    try:
        return cluster_client(os.environ.get("PROBE_CONTEXT"), os.environ.get("PROBE_KUBECONFIG"))
    except UNUSABLE as why:
        raise NotReady(f"the kubeconfig cannot be used: {why}") from None


def http_api() -> HttpApi:
    """The same cluster, for those who read a few objects and need no models of them."""
    return HttpApi(cluster())


def until_ready(what: str, missing: Missing, timeout: float, how_to_look: str) -> None:
    """Return when `missing` is empty; raise NotReady after `timeout` seconds.

    Progress goes to stderr, where the engine shows it. A cluster that refuses or does not
    answer counts as missing: its API may still be starting (13 in the measurements).
    """
    start = told = time.monotonic()
    while True:
        try:
            left = missing()
        except UNANSWERED as why:
            left = [complaint(why)]
        now = time.monotonic()
        if not left:
            say(f"{what} is ready after {now - start:.0f} s")
            return
        if now - start > timeout:
            raise NotReady(
                f"{what} is not ready after {timeout:.0f} s. Missing: {'; '.join(left)}."
                f" Look with: {how_to_look}. Then run the update again: it goes on from here."
            )
        if now - told > _NEWS:
            told = now
            say(f"{what}: waiting for {'; '.join(left)} ({now - start:.0f} s)")
        time.sleep(_EVERY)


def say(text: str) -> None:
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)


def reported(main: Callable[[], None]) -> Callable[[], None]:
    """The main function of a probe: exit 1 with one sentence when what it waits for never comes."""

    @functools.wraps(main)
    def probe() -> None:
        try:
            main()
        except NotReady as why:
            say(str(why))
            raise SystemExit(1) from None

    return probe
