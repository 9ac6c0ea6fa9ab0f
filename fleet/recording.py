"""Running the program without an engine, and recording what it registers.

Each resource takes the SDK two milliseconds. Of many teams a second process records the other half.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import runpy
import sys
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import json_format
from pulumi.runtime import config, mocks, rpc
from pulumi.runtime import settings as runtime_settings
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import run_pulumi_func
from pulumi.runtime.sync_await import _sync_await

from components.focus import Focus, only
from components.past import STACK
from components.platform_reading import OUTPUT
from components.settings.mistakes import NAMESPACE
from components.stack_outputs import READ_OUTPUTS
from fleet import program_imports
from fleet.quiet_sdk import quiet
from fleet.stack_file import ROOT, SECRET
from provider.queue_specs import unpacked
from provider.tokens import QUEUES

UNKNOWN: Final = "[unknown until the update]"
PROJECT: Final = "kai-fleet"
_MANY: Final = 40  # teams; with fewer of them the second process has hardly begun


@dataclass(frozen=True)
class Registered:
    """One resource as the program registers it. Secrets are masked, unknown values are marked."""

    urn: str
    type: str
    name: str
    parent: str
    provider: str
    inputs: dict[str, Any] = field(hash=False)

    def record(self) -> dict[str, Any]:
        """The six fields that the plan's JSON shows."""
        return {
            "urn": self.urn,
            "type": self.type,
            "name": self.name,
            "parent": self.parent,
            "provider": self.provider,
            "inputs": self.inputs,
        }


class _Echo(mocks.Mocks):
    """A first preview: what is not an input is not known, but the platform of a team stack is."""

    def __init__(self, platform: Mapping[str, Any] | None = None) -> None:
        self._outputs = {"outputs": {OUTPUT: platform}} if platform is not None else {}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        return (self._outputs if args.token == READ_OUTPUTS else {}), []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        return None, {}


class _Recorder(mocks.MockMonitor):
    """The engine's side of the program: answers a preview, and notes every registration."""

    def __init__(self, stack: str, echo: _Echo) -> None:
        super().__init__(echo)
        self.stack = stack
        self.registered: dict[str, Registered] = {}

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """As the engine does: the types of all parents, but not the stack's own."""
        above = parent.split("::")[2] if parent else STACK
        qualified = type_ if above == STACK else f"{above}${type_}"
        return f"urn:pulumi:{self.stack}::{PROJECT}::{qualified}::{name}"

    # The mocks' own answers are the same, after all inputs are read anew for `new_resource`.

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        urn = self._note(request, request.object)
        return resource_pb2.RegisterResourceResponse(urn=urn)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        urn = self._note(request, request.properties)
        return resource_pb2.ReadResourceResponse(urn=urn)

    def _note(self, request: Any, inputs: Any) -> str:
        urn = self.make_urn(request.parent, request.type, request.name)
        plain = _plain(json_format.MessageToDict(inputs))
        if request.type == QUEUES:
            plain["queues"] = unpacked(plain["queues"])
        self.registered[urn] = Registered(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            provider=request.provider.rpartition("::")[0],
            inputs=plain,
        )
        return urn


def record(
    stack: str, settings: Mapping[str, Any], platform: Mapping[str, Any] | None = None
) -> list[Registered]:
    """Everything that the program registers for a stack of these settings, sorted by URN.

    `platform` is what the platform stack of a team stack exports under that name.
    """
    teams = settings.get("teams")
    names = list(teams) if isinstance(teams, Mapping) else []
    if len(names) < _MANY or not _can_fork():
        found = _registered(stack, settings, platform)
    else:
        program_imports.load()  # once for both
        sys.stdout.flush()  # what is not written yet would be written by both
        sys.stderr.flush()
        half = len(names) // 2
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            others = pool.submit(_in_the_fork, stack, settings, platform, names[half:])
            found = _registered(stack, settings, platform, names[:half])
            found |= others.result()
    return sorted((it for it in found.values() if it.type != STACK), key=lambda it: it.urn)


def _can_fork() -> bool:
    """Whether a fork gets a whole process, and a processor of its own."""
    return sys.platform == "linux" and threading.active_count() == 1 and (os.cpu_count() or 1) > 1


def _in_the_fork(
    stack: str,
    settings: Mapping[str, Any],
    platform: Mapping[str, Any] | None,
    teams: Collection[str],
) -> dict[str, Registered]:
    asyncio.set_event_loop(asyncio.new_event_loop())  # the parent's, if any, is not to be shared
    return _registered(stack, settings, platform, teams)


def _registered(
    stack: str,
    settings: Mapping[str, Any],
    platform: Mapping[str, Any] | None,
    teams: Collection[str] | None = None,
) -> dict[str, Registered]:
    """By URN; `teams`: the platform and these, None is all."""
    echo = _Echo(platform)
    recorder = _Recorder(stack, echo)
    silent = logging.Logger("offline plan", level=logging.CRITICAL + 1)
    # Else the stack that was recorded before this one would be the parent of what has none.
    runtime_settings.ROOT.set(None)
    mocks.set_mocks(
        echo,
        project=PROJECT,
        stack=stack,
        preview=True,
        monitor=recorder,
        logger=silent,
        organization="organization",
    )
    # The engine hands objects over with their keys sorted.
    given = {key: json.dumps(value, sort_keys=True) for key, value in settings.items()}
    config.set_all_config({f"{NAMESPACE}:{key}": value for key, value in given.items()})

    def program() -> None:
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

    half = nullcontext() if teams is None else only(Focus(frozenset(teams), frozenset()))
    with quiet(), half:
        _sync_await(run_pulumi_func(program))
    return recorder.registered


def _plain(value: Any) -> Any:
    """A registered value as a reader may see it."""
    if isinstance(value, dict):
        if rpc._special_sig_key in value:
            is_secret = value[rpc._special_sig_key] == rpc._special_secret_sig
            return SECRET if is_secret else UNKNOWN
        return {key: _plain(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value == rpc.UNKNOWN:
        return UNKNOWN
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
