"""What `fleet team add` needs to know: from flags, or by questions with sensible defaults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.prompt import IntPrompt, Prompt

from kai_fleet_cli.cluster_reader import labels, node_gpus
from kai_fleet_cli.display.terminal import Screen
from kai_fleet_cli.teams import nodes, queues
from kai_fleet_cli.teams.lookup import PlatformFile
from kubectl_fleet.errors import UserError
from kubectl_fleet.objects import in_pool
from kubectl_fleet.releases import KAI, advised, support

Nodes = Callable[[], Sequence[Mapping[str, Any]]]  # of the host; none where it does not answer
MODES = ("virtual", "host", "default")


@dataclass(frozen=True)
class TeamAnswers:
    """A new team. `queues` are leaf queues with their GPUs; in mode host it is the one it gets."""

    mode: str = ""
    version: str = ""
    pool: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    queues: Mapping[str, str] = field(default_factory=dict)


def pairs(items: Sequence[str], flag: str, example: str) -> dict[str, str]:
    """`KEY=VALUE` flags as a mapping. Raises UserError."""
    values: dict[str, str] = {}
    for item in items:
        key, _, value = item.partition("=")
        if not key or not value:
            raise UserError(f"{flag} {item} is not understood; write {flag} {example}")
        values[key] = value
    return values


def complete(
    flags: TeamAnswers, platform: PlatformFile, name: str, screen: Screen, read_nodes: Nodes
) -> TeamAnswers:
    """Ask for what no flag says. Without a terminal a UserError names the flag."""

    def ask(flag: str, question: str, likely: str, choices: Sequence[str] | None = None) -> str:
        _require_terminal(screen, f"{flag} {likely}".rstrip())
        return Prompt.ask(
            question,
            default=likely,
            choices=list(choices) if choices else None,
            show_choices=False,
            console=screen.out,
        )

    likely = "host" if "kai" in platform.raw else "virtual"
    mode = flags.mode or ask("--mode", f"mode ({', '.join(MODES)})", likely, MODES)
    if mode not in MODES:
        raise UserError(f"--mode {mode} is none; write one of {', '.join(MODES)}")
    if mode != "virtual" and flags.version:
        raise UserError(f"--version is for mode virtual; mode {mode} has no KAI of its own")
    if mode == "default" and flags.queues:
        raise UserError("--queue is for modes virtual and host; mode default has no queues")
    answers = replace(flags, mode=mode)
    if mode == "virtual" and not flags.version:
        for version in KAI if screen.asks else ():
            screen.line(f"  {version:<9} {support(version).words}")
        likely = advised(KAI) or list(KAI)[-1]
        answers = replace(answers, version=ask("--version", "KAI version", likely, tuple(KAI)))
    if not flags.pool and (mode == "virtual" or (mode == "default" and screen.asks)):
        likely = _likely_pool(platform, name, screen, read_nodes)
        pool = ask("--pool", "node pool (KEY=VALUE)", likely)
        answers = replace(answers, pool=pairs([pool], "--pool", likely))
    if flags.gpus is None:
        _require_terminal(screen, "--gpus 4")
        every = read_nodes() if answers.pool else []
        there = sum(node_gpus(node) for node in every if in_pool(labels(node), answers.pool))
        gpus = IntPrompt.ask("GPUs", default=int(there), console=screen.out)
        answers = replace(answers, gpus=gpus)
    if (answers.gpus or 0) < 0:
        raise UserError(f"--gpus {answers.gpus} is negative; write how many it may hold, such as 4")
    if mode == "virtual" and not flags.queues:
        likely = f"{name}={answers.gpus}"
        asked = "queues (NAME=GPUS, with spaces between)"
        wanted = ask("--queue", asked, likely) if screen.asks else likely
        answers = replace(answers, queues=pairs(wanted.split(), "--queue", likely))
    if mode == "host" and not flags.queues:
        leaves = queues.leaves(platform.raw.get("queues"))
        if screen.asks and leaves:
            screen.line(f"  leaf queues of the host: {', '.join(leaves)}")
        likely = name if name in leaves else next(iter(leaves), "")
        answers = replace(answers, queues={ask("--queue", "the host's leaf queue", likely): ""})
    return answers


def _require_terminal(screen: Screen, example: str) -> None:
    if not screen.asks:
        raise UserError(
            f"{example.partition(' ')[0]} is missing, and there is no terminal to ask at; write,"
            f" for example, {example}"
        )


def _likely_pool(platform: PlatformFile, name: str, screen: Screen, read_nodes: Nodes) -> str:
    """The free pool of the team's name, else the first one; all that are free are shown."""
    key = nodes.pool_key(platform)
    free = nodes.free_pools(platform, read_nodes()) if screen.asks else {}
    for pool, what in free.items():
        screen.line(f"  free: {pool} ({what})")
    own = f"{key}={name}"
    return own if own in free else next(iter(free), own)
