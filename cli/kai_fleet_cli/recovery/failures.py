"""What an engine's error means, in a sentence that says what to do."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pulumi import automation

from kai_fleet.kube.text import without_controls
from kai_fleet.settings.files.project import CHECKOUT
from kai_fleet_cli.recovery import file_backend, resume

_AGAIN: Final = "then run the same command again: it goes on from here"
# What stands in the engine's output, and the sentence for it; the first that fits is said.
_KNOWN: Final[Mapping[str, str]] = {
    r"mvcc: database space exceeded|etcdserver: no space": (
        "the cluster's etcd is full and takes no more writes: free space in it (compact and"
        " defragment it, or give it a larger --quota-backend-bytes), disarm its alarm (etcdctl"
        f" alarm disarm), {_AGAIN}"
    ),
    r"argument list too long": (
        "the stack file is too large: Pulumi hands all of it to each plugin as one variable, and"
        " Linux takes at most 128 KiB in one, about 1,200 queues. Put the queue tree into a file of"
        " its own and write its path: kai-fleet:queues: queues/prod.yaml"
    ),
    r"no space left on device": (
        f"a disk is full, of this machine or of the state's place: free space, {_AGAIN}"
    ),
    r"stream error: stream ID \d+; INTERNAL_ERROR|etcdserver: (?:request timed out|no leader"
    r"|leader changed)|in the time allotted|request did not complete within|ReadTimeoutError"
    r"|Read timed out|does not answer in time|the API answers 5\d\d"
    r"|server(?: says)?: rpc error: code = Unavailable": (
        "a cluster's API server gives no answers: the etcd behind it is away, or its disk is full:"
        f" see kubectl get --raw '/readyz?verbose', {_AGAIN}"
    ),
    r"uninstall: Release not loaded|release: not found": (
        "somebody uninstalled a release by hand, and the state still has it. Have the state say"
        " what is there: {again}"
    ),
    r'namespaces \\?"team-[\w-]+\\?" not found': (
        "a team's namespace is gone, and the state still has it: somebody deleted it, or a removal"
        " was cut off. Have the state say what is there: {again}"
    ),
    r"exists already|already exists|AlreadyExists|cannot re-use a name": (
        "something of that name is in the cluster, and this stack did not make it. Leave it to its"
        " owner: give yours another name, or leave out the part that is there already"
        " (docs/start.md)"
    ),
    r"exited prematurely|plugin .*exited|error reading from server: EOF|code = Unavailable": (
        f"a provider plugin ended in the middle (killed, or out of memory?): {_AGAIN[5:]}"
    ),
    r"change of providers mixed with --target|could not find provider \S+ in old state": (
        "this stack was last updated with other versions of Pulumi's plugins, and a removal updates"
        " nothing else: update the whole stack first, then the same command again"
    ),
    r"failed calling webhook": (
        "the cluster asks a webhook that does not answer; for queues it is KAI's own, so look with"
        f" kubectl -n kai-scheduler get pods and restart what is not ready, {_AGAIN}"
    ),
    r"mismatched digest|digest mismatch|integrity check failed|does not match the digest": (
        "a chart is not the one that was asked for: its registry or a proxy before it gives other"
        f" content for that digest; ask whoever runs it, or set `chart:` to a mirror, {_AGAIN}"
    ),
    r"failed to (?:fetch|perform|download|do request)|is not a valid chart repository"
    r"|unexpected status (?:code|from)|looks like .* is not a valid chart": (
        "a chart cannot be had from its registry now: see that it answers, or take charts from a"
        f" directory (KAI_FLEET_CHARTS) or a mirror (`chart:`), {_AGAIN}"
    ),
    r"failed to read resource state due to unreachable cluster": (
        "a cluster's API server does not answer. If that is a vCluster that somebody removed:"
        " {again}"
    ),
    r"connection refused|unreachable|i/o timeout|no route to host|connection reset"
    r"|Failed to establish a new connection|TLS handshake timeout|does not answer": (
        f"a cluster's API server does not answer: see that kubectl reaches it, {_AGAIN}"
    ),
}
# Before what the program itself found wrong once it ran, or once it had run.
_LEAD: Final = re.compile(r"(an unhandled error occurred: |Exception calling application: )+")
KILLED: Final = re.compile(r"code: -(\d+)")
_PLUGIN: Final = re.compile(
    r"install resource plugin 'pulumi-resource-([\w-]+)' at version ([\w.+-]*\w)"
)
_STATE: Final = re.compile(
    r"failed to load checkpoint|unexpected end of JSON|loading snapshot|snapshot integrity"
    r"|could not deserialize deployment|unmarshal.*checkpoint|invalid character"
)


def explain(
    what: str,
    stack: str,
    why: automation.errors.CommandError,
    environment: Mapping[str, str] | None = None,
) -> str:
    """One sentence for a user: what happened to `what` (the update…), and what to do.

    `environment` is what the engine had besides this process's own.
    """
    environment = environment or {}
    text = str(why)
    if isinstance(why, automation.errors.ConcurrentUpdateError):
        held = file_backend.holder_in(text)
        ended = held is not None and held.alive is False and file_backend.folder(environment)
        if ended and not file_backend.holder(stack, environment):
            return f"{what} did not start: another one has just ended. Run the same command again"
        return locked(what, stack, held)
    if killed := KILLED.search(text):
        return (
            f"{what} was cut off: the engine was killed (signal {killed[1]}; 9 may be the machine's"
            f" memory that ran out). Take its lock off: {_cancel(stack)}, {_AGAIN}"
        )
    if plugin := _PLUGIN.search(text):
        named = f"resource {plugin[1]} {plugin[2]}"
        return (
            f"{what} failed: Pulumi's plugin for it, {plugin[1]} {plugin[2]}, is not here and could"
            f" not be downloaded. Install it: {_cli()} plugin install {named} (--server URL for a"
            f" mirror, --file ARCHIVE for what you have), {_AGAIN}"
        )
    complaint = last_words(text)
    if "EOF" in complaint and (cut := file_backend.cut_attributes(stack, environment)):
        return cut_off(stack, cut)
    if "secrets manager" in complaint:  # the state is whole: nothing has to be restored
        return f"the secrets of stack {stack} cannot be read with what is set here: {complaint}"
    if _STATE.search(complaint):
        return (
            f"the state of stack {stack} cannot be read ({complaint}): its file is cut short or"
            f" was edited. Put the last good one back: {file_backend.put_back(stack, environment)}"
        )
    for words, sentence in _KNOWN.items():
        if re.search(words, text):
            again = resume.destroy(stack) if "removal" in what else resume.up(stack)
            told = sentence.replace("{again}", again)
            return f"{what} failed; the lines above say where. In short: {told}"
    whole = not complaint.endswith(":")  # else a list follows, which the lines above have
    if complaint and whole and complaint not in ("update failed", "preview failed"):
        return f"{what} failed: {complaint}"
    return f"{what} failed; the lines above say where and why"


def _cli() -> str:
    """Pulumi's CLI as a shell finds it, also one that was fetched for this checkout."""
    if CHECKOUT is None:
        return "pulumi"
    from sandbox.tools import toolbox

    cli = toolbox.ensure(("pulumi",), lambda _: None)["pulumi"]
    return "pulumi" if cli.origin == "path" else shlex.quote(str(cli.path))


def cut_off(stack: str, files: Sequence[Path]) -> str:
    """What to do about small files beside a state that a kill left empty."""
    named = " ".join(shlex.quote(str(file)) for file in files)
    return (
        f"the state of stack {stack} is whole, but a run was killed while it wrote small files"
        f" beside it. Remove them: rm {named}, then run the same command again"
    )


def _cancel(stack: str) -> str:
    return f"pulumi cancel --yes --stack {stack}"


def locked(what: str, stack: str, holder: file_backend.Holder | None) -> str:
    """What to do where another run has the stack's lock."""
    cancel = _cancel(stack)
    lead = f"{what} cannot start: another one holds the stack's lock"
    if holder is None or holder.alive is None:
        where = f" ({holder})" if holder else ""
        return f"{lead}{where}. Wait for it; if it was killed, run: {cancel}"
    if holder.alive:
        return f"{lead} ({holder}), and it runs. Wait for it"
    return f"{lead} ({holder}), but that process was killed. Take the lock off with: {cancel}"


def naming(text: str, stack: str, teams: Sequence[str]) -> str:
    """A message whose `fleet up --refresh` of that stack also names the teams that may go."""
    command = re.escape(resume.up(stack))
    return re.sub(rf"{command}(?![\w-])(?! --remove-team)", resume.up(stack, teams), text)


def last_words(text: str) -> str:
    """The engine's own error line out of a CommandError's dump of everything.

    A tenant's API server may have words in it: a terminal is told no more than they say.
    """
    errors = re.findall(r"^(?:\s*stderr:)?\s*error: (.+)$", text, re.M)
    return _LEAD.sub("", without_controls(errors[-1]).strip(), count=1) if errors else ""
