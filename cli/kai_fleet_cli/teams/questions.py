"""What `fleet team add` needs to know: from flags, or by questions with sensible defaults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.prompt import IntPrompt, Prompt

from kai_fleet_cli.cluster_reader import labels, node_gpus
from kai_fleet_cli.display.screen import Screen
from kai_fleet_cli.teams import nodes, queues
from kai_fleet_cli.teams.lookup import PlatformFile
from kubectl_fleet.errors import UserError
from kubectl_fleet.live.objects import in_pool
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
        key, sign, value = item.partition("=")
        if not sign or not key or not value:
            raise UserError(f"{flag} {item} is not understood; write {flag} {example}")
        values[key] = value
    return values


def complete(
    flags: TeamAnswers, platform: PlatformFile, name: str, screen: Screen, nodes: Nodes
) -> TeamAnswers:
    """Ask for what no flag says. Without a terminal a UserError names the flag."""
    ask = _Questions(platform, name, screen, nodes)
    mode = flags.mode or ask.mode()
    if mode not in MODES:
        raise UserError(f"--mode {mode} is none; write one of {', '.join(MODES)}")
    answers = replace(flags, mode=mode)
    if mode != "virtual" and flags.version:
        raise UserError(f"--version is for mode virtual; mode {mode} has no KAI of its own")
    if mode == "default" and flags.queues:
        raise UserError("--queue is for modes virtual and host; mode default has no queues")
    if mode == "virtual" and not answers.version:
        answers = replace(answers, version=ask.version())
    if not answers.pool and (mode == "virtual" or (mode == "default" and screen.asks)):
        answers = replace(answers, pool=ask.pool())
    if answers.gpus is None:
        answers = replace(answers, gpus=ask.gpus(answers.pool))
    if mode == "host" and not answers.queues:
        answers = replace(answers, queues=ask.leaf())
    if mode == "virtual" and not answers.queues:
        answers = replace(answers, queues=ask.queues(answers.gpus or 0))
    return answers


@dataclass
class _Questions:
    platform: PlatformFile
    name: str
    screen: Screen
    nodes: Nodes

    def mode(self) -> str:
        likely = "host" if "kai" in self.platform.raw else "virtual"
        return self._ask("--mode", f"mode ({', '.join(MODES)})", likely, MODES)

    def version(self) -> str:
        for version in KAI if self.screen.asks else ():
            self.screen.line(f"  {version:<9} {support(version).words}")
        likely = advised(KAI) or list(KAI)[-1]
        return self._ask("--version", "KAI version", likely, tuple(KAI))

    def pool(self) -> dict[str, str]:
        free = nodes.free_pools(self.platform, self.nodes()) if self.screen.asks else []
        for pool in free:
            self.screen.line(f"  free: {pool}")
        own = next((p for p in free if p.value == self.name), free[0] if free else None)
        likely = f"{own.key}={own.value}" if own else f"{nodes.pool_key(self.platform)}={self.name}"
        return pairs([self._ask("--pool", "node pool (KEY=VALUE)", likely)], "--pool", likely)

    def gpus(self, pool: Mapping[str, str]) -> int:
        if not self.screen.asks:
            raise _missing("--gpus", "--gpus 4")
        every = self.nodes() if pool else []
        likely = int(sum(node_gpus(node) for node in every if in_pool(labels(node), pool)))
        return IntPrompt.ask("GPUs", default=likely, console=self.screen.out)

    def queues(self, gpus: int) -> dict[str, str]:
        if not self.screen.asks:
            return {self.name: str(gpus)}
        likely = f"{self.name}={gpus}"
        answer = self._ask("--queue", "queues (NAME=GPUS, with spaces between)", likely)
        return pairs(answer.split(), "--queue", likely)

    def leaf(self) -> dict[str, str]:
        free = queues.leaves(self.platform.raw.get("queues"))
        likely = self.name if self.name in free else (free[0] if free else "")
        if self.screen.asks and free:
            self.screen.line(f"  leaf queues of the host: {', '.join(free)}")
        return {self._ask("--queue", "the host's leaf queue", likely): ""}

    def _ask(
        self, flag: str, question: str, likely: str, choices: Sequence[str] | None = None
    ) -> str:
        if not self.screen.asks:
            raise _missing(flag, f"{flag} {likely}".rstrip())
        return Prompt.ask(
            question,
            default=likely,
            choices=list(choices) if choices else None,
            show_choices=False,
            console=self.screen.out,
        )


def _missing(flag: str, example: str) -> UserError:
    return UserError(
        f"{flag} is missing, and there is no terminal to ask at; write, for example, {example}"
    )
