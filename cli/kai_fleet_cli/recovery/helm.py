"""Helm's own commands, for a release that a killed run left half-way."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet_cli.errors import UserError

_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Remedy:
    """`helm uninstall` or `helm rollback` of a release; `provider` has the way to its cluster.

    `hooks` are those of Helm's record. Of a vCluster's release a tenant may have written that, and
    no vCluster chart has any.
    """

    verb: str
    namespace: str
    name: str
    provider: Mapping[str, Any]
    hooks: bool = True

    @property
    def arguments(self) -> list[str]:
        """The command's, without the way to the cluster."""
        without = [] if self.hooks else ["--no-hooks"]
        return [self.verb, self.name, "--namespace", self.namespace, *without]

    def __str__(self) -> str:
        """The command as a person runs it with that cluster's kubeconfig."""
        context = self.provider.get("context")
        named = ["--kube-context", str(context)] if context else []
        return shlex.join(["helm", *self.arguments, *named])

    def run(self, environment: Mapping[str, str]) -> None:
        """Run it. Raises UserError with Helm's words, or the command where there is no Helm."""
        with _way_in(self) as (way, file):
            try:
                done = subprocess.run(
                    ["helm", *self.arguments, *way],
                    env={**os.environ, **environment},
                    pass_fds=[file] if file is not None else [],
                    capture_output=True,
                    text=True,
                    timeout=_SECONDS,
                    check=False,
                )
            except FileNotFoundError:
                raise UserError(f"helm is not on PATH; install it, or run: {self}") from None
            except subprocess.TimeoutExpired:
                raise UserError(f"{self} did not end within {_SECONDS:.0f} s") from None
        if done.returncode != 0 and "not found" not in done.stderr:
            raise UserError(f"{self} failed: {done.stderr.strip()}")


@contextmanager
def _way_in(remedy: Remedy) -> Iterator[tuple[list[str], int | None]]:
    """Options for the cluster, and the open file that they name.

    A kubeconfig's content is handed over in memory: a killed run leaves no file with a key.
    """
    context = remedy.provider.get("context")
    named = ["--kube-context", str(context)] if context else []
    given = str(remedy.provider.get("kubeconfig") or "")
    if "\n" not in given:
        yield [*(["--kubeconfig", given] if given else []), *named], None
        return
    if not hasattr(os, "memfd_create"):
        raise UserError(f"with the kubeconfig of that cluster, run: {remedy}")
    file = os.memfd_create("kubeconfig", 0)
    try:
        os.write(file, given.encode())
        yield ["--kubeconfig", f"/proc/self/fd/{file}", *named], file
    finally:
        os.close(file)
