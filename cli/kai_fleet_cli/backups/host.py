"""The host of a stack for backups: its API, and commands in containers by kubectl."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, complaint
from kai_fleet.wording import short_line
from kai_fleet_cli import hosts
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading

_PAUSE_SECONDS = 0.5
_KUBECTL = "KAI_FLEET_KUBECTL"  # the program; on the sandbox a stand-in for its pods


@dataclass(frozen=True)
class Host:
    """The API server of a stack's host, and the same for kubectl.

    Attributes:
        api: The API server.
        kubectl: The words of a kubectl that reaches it.
        environment: Its environment variables.
    """

    api: Api
    kubectl: tuple[str, ...]
    environment: dict[str, str]

    def run(self, *words: str, sent: bytes = b"") -> bytes:
        """Run kubectl with these words and return what it prints.

        Its stdin gets `sent` and stays open until it ends, because `kubectl exec` drops what is on
        its way when stdin closes: so the command there has to know how much it reads.

        Raises:
            UserError: kubectl is not there, or it fails.
        """
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    [*self.kubectl, *words],
                    env=self.environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
            except OSError as error:
                raise UserError(f"kubectl does not run: {error}; install it") from None
            printed = _printed(process, sent)
            errors.seek(0)
            complaint = errors.read().decode(errors="replace").strip()
        if process.returncode:
            last = short_line(complaint.rpartition("\n")[2])
            raise UserError(f"kubectl {words[0]} fails: {last}")
        return printed


def _printed(process: subprocess.Popen[bytes], sent: bytes) -> bytes:
    """What a process prints until it ends; it gets `sent`. A pipe that it closes early is fine."""
    assert process.stdin and process.stdout
    with suppress(BrokenPipeError), process:
        process.stdin.write(sent)
        process.stdin.flush()
        return process.stdout.read()
    return b""


@contextmanager
def host_of(stack: str) -> Iterator[Host]:
    """The host of a stack, while the block runs.

    Raises UserError if the stack's file, its sandbox or its kubeconfig is of no use, or for a
    KubeError in the block.
    """
    address = hosts.host_address(stack, reading.usable_settings_of(stack))
    environment = {**os.environ, **address.variables}
    words = [environment.get(_KUBECTL, "kubectl")]
    if address.context:
        words += ["--context", address.context]
    with tempfile.TemporaryDirectory(prefix="kai-fleet-host-") as folder:
        try:
            if address.kubeconfig:
                kubeconfig = Path(folder, "kubeconfig")
                kubeconfig.touch(mode=0o600)
                kubeconfig.write_text(address.kubeconfig)
                environment["KUBECONFIG"] = str(kubeconfig)
            with closing(address.open(None)) as api:
                yield Host(api, tuple(words), environment)
        except KubeError as error:
            raise UserError(f"the host of stack {stack}: {complaint(error)}") from None


def until(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Wait until a condition holds. Raises UserError, with `otherwise`, after these seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise UserError(otherwise)
        time.sleep(_PAUSE_SECONDS)
