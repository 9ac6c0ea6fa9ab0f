"""GPU-hours of the last days against as many before, what they cost, and what stood idle."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self, TypeAlias

from kai_fleet.settings import Settings
from kai_fleet.settings.sections.monitoring import DEFAULT, PRODUCT, Prices
from kai_fleet_cli.doctor.cluster_state import Snapshot
from kai_fleet_cli.report.live import pool_name
from kai_fleet_cli.report.model import PeriodUse, UseOverTime, UseRow
from kai_fleet_cli.report.over_time import Window, gpu_hours, held_by, resource_label
from kai_fleet_cli.report.prometheus import Query
from kai_fleet_cli.report.team_usage import GpuBalance, TeamUsageRow
from kubectl_fleet.live.objects import in_pool

PERIODS: Final = ("7d", "30d")
_NO_POOL: Final = "no labels of a pool"
_GONE: Final = "nodes that are gone"
_ANY: Final = "any node"
_LABEL: Final = "label_nvidia_com_gpu_product"  # of kube-state-metrics, where it is told to
_MODELS: Final = (
    f'last_over_time((max by (node, {_LABEL}) (kube_node_labels{{{_LABEL}!=""}}))[30d:1h])'
)
_SAME: Final = 1.05  # times what a KAI counts: more is more than samples differ by
Hours: TypeAlias = Mapping[str, float]  # GPU-hours by node, or by model


def use_over_time(
    ask: Callable[[], Query], settings: Settings, look: Snapshot | None
) -> UseOverTime:
    """What the stack's Prometheus tells, by team and queue. Raises UnreachableError.

    `ask` opens the way to it, which has one time for all that is asked by it. The nodes of `look`
    tell models and pools.
    """
    nodes = _Nodes.of(settings, look, ask())
    teams: dict[tuple[str, str], dict[str, PeriodUse]] = defaultdict(dict)
    idle: dict[str, dict[str, PeriodUse]] = defaultdict(dict)
    notes: list[str] = []
    unpriced: set[str] = set()
    for since in PERIODS:
        period = _Period.of(ask, settings, since)
        notes += period.notes()
        for row in period.rows:
            models = period.models(row.team, nodes)
            rate = _rate(models, settings.prices)
            unpriced |= _unpriced(models, settings.prices) if row.gpus.used else set()
            for queue, hours in {"": row.gpus, **_of_queues(row)}.items():
                before = period.before_of(row, queue)
                used = None if row.unreached else hours.used
                teams[row.team, queue][since] = PeriodUse(used, before, _cost(used, rate))
        for pool, by_node in period.idle(nodes).items():
            models, stood = nodes.by_model(by_node), sum(by_node.values())
            unpriced |= _unpriced(models, settings.prices)
            rate = _rate(models, settings.prices)
            idle[pool][since] = PeriodUse(stood, cost=_cost(stood, rate))
    if not idle:
        notes.append(
            "Idle GPUs, and the models that teams had, are not known: Prometheus has no numbers of"
            " kube-state-metrics."
        )
    notes += [_no_price(model) for model in sorted(unpriced)]
    return UseOverTime(
        PERIODS,
        settings.prices.currency if settings.prices else "",
        [UseRow(team, queue, uses) for (team, queue), uses in teams.items()],
        [UseRow(pool, "", uses) for pool, uses in sorted(idle.items())],
        notes,
    )


@dataclass(frozen=True)
class _Nodes:
    """The models of nodes' GPUs, the pools of nodes that are there now, and those of teams.

    `others` is what nodes go by that are not among them. `whole`: of the whole host, and not only
    of a team's own stack.
    """

    models: Mapping[str, str]
    pools: Mapping[str, str]
    of_teams: Mapping[str, str]
    others: str
    whole: bool

    @classmethod
    def of(cls, settings: Settings, look: Snapshot | None, query: Query) -> Self:
        told = {labels.get("node", ""): labels.get(_LABEL, "") for labels, _ in query(_MODELS)}
        nodes = look.host.all("nodes") if look else []
        selectors = {
            name: team.wanted.node_pool
            for name, team in (look.teams.items() if look else ())
            if team.wanted.node_pool
        }
        of_teams = {name: pool_name(labels) for name, labels in selectors.items()}
        pools = {
            node.name: next(
                (
                    of_teams[name]
                    for name, labels in selectors.items()
                    if in_pool(node.labels, labels)
                ),
                _NO_POOL,
            )
            for node in nodes
        }
        seen = {node.name: model for node in nodes if (model := node.labels.get(PRODUCT))}
        others = _GONE if look else _ANY
        return cls({**told, **seen}, pools, of_teams, others, settings.platform_facts is None)

    def by_model(self, hours: Hours) -> dict[str, float]:
        """GPU-hours of nodes by their models, "" for one that is not known."""
        models: dict[str, float] = defaultdict(float)
        for node, amount in hours.items():
            if amount:
                models[self.models.get(node, "")] += amount
        return models


@dataclass(frozen=True)
class _Period:
    """One window: what teams used, and which nodes' whole GPUs were there and were held.

    `before` are the rows of the window before. `held` is by namespace.
    """

    window: Window
    rows: Sequence[TeamUsageRow]
    before: Mapping[str, TeamUsageRow]
    measured: float
    capacity: Hours
    held: Mapping[str, Hours] = field(default_factory=dict)

    @classmethod
    def of(cls, ask: Callable[[], Query], settings: Settings, since: str) -> Self:
        window, names = Window.of(since), [*settings.teams, *settings.team_stacks]
        query, resource = ask(), resource_label(settings)
        rows, measured = gpu_hours(query, settings, names, window)
        allocatable = f'max by (node) (kube_node_status_allocatable{{resource="{resource}"}})'
        capacity = window.total(query, allocatable, "node")
        by = ("namespace", "node")
        held: dict[str, dict[str, float]] = defaultdict(dict)
        for (namespace, node), hours in window.total(query, held_by(settings, *by), *by).items():
            held[namespace][node] = hours
        before = {it.team: it for it in gpu_hours(ask(), settings, names, window.before)[0]}
        of_nodes = {node: hours for (node,), hours in capacity.items()}
        return cls(window, rows, before, measured, of_nodes, held)

    def before_of(self, row: TeamUsageRow, queue: str) -> float | None:
        """GPU-hours of the window before; None where one of the two was not measured in full."""
        earlier = self.before[row.team]
        if not self.window.covered_by(min(row.measured, earlier.measured)):
            return None
        of_queues = _of_queues(earlier)
        gpus = of_queues.get(queue) if queue else earlier.gpus
        return gpus.used if gpus else None

    def models(self, team: str, nodes: _Nodes) -> dict[str, float]:
        """On which models a team's GPU-hours were: by the whole GPUs that it held, else by the
        nodes of its pool, else by all nodes.
        """
        pool = nodes.of_teams.get(team)
        of_pool = {node: it for node, it in self.capacity.items() if nodes.pools.get(node) == pool}
        every = (self.held.get(f"team-{team}", {}), of_pool, self.capacity)
        return next((models for hours in every if (models := nodes.by_model(hours))), {"": 1.0})

    def idle(self, nodes: _Nodes) -> dict[str, dict[str, float]]:
        """The whole GPUs that no pod held, by pool and node."""
        idle: dict[str, dict[str, float]] = defaultdict(dict)
        for node, hours in self.capacity.items():
            pool = nodes.pools.get(node, nodes.others)
            if nodes.whole or pool in nodes.of_teams.values():
                taken = sum(of.get(node, 0.0) for of in self.held.values())
                idle[pool][node] = max(0.0, hours - taken)
        return idle

    def notes(self) -> Iterator[str]:
        """What was not measured, and where a team's own KAI says less than the host does."""
        since, hours = self.window.since, self.window.hours
        if not self.window.covered_by(self.measured):
            measured = f"{self.measured:.1f} of the {hours:g} hours of {since}"
            yield f"Prometheus has numbers of {measured}."
        for row in self.rows:
            if row.unreached:
                yield f"Team {row.team} is not counted: {row.unreached}."
            elif row.measured < self.measured and not self.window.covered_by(row.measured):
                yield (
                    f"Of team {row.team}, Prometheus has numbers of {row.measured:.1f} of the"
                    f" {hours:g} hours of {since}."
                )
            held = sum(self.held.get(f"team-{row.team}", {}).values())
            if row.mode == "virtual" and not row.unreached and held > row.gpus.used * _SAME:
                yield (
                    f"Team {row.team} held {held:,.1f} whole GPU-hours of the host in {since}, and"
                    f" its own KAI counts {row.gpus.used:,.1f}: the rest is free parts of shared"
                    " GPUs, pods beside its queues, or a KAI that the team changed."
                )


def _of_queues(row: TeamUsageRow) -> dict[str, GpuBalance]:
    """What a team's queues used; what its pods have beside them is in the team's number only."""
    return {queue: gpus for queue, gpus in row.queues.items() if queue is not None}


def _rate(models: Hours, prices: Prices | None) -> float | None:
    """What a GPU-hour on these models costs on average; None where one has no price."""
    if prices is None or _unpriced(models, prices):
        return None
    hours = sum(models.values())
    return (
        sum(it * (prices.of(model) or 0.0) for model, it in models.items()) / hours
        if hours
        else 0.0
    )


def _unpriced(models: Hours, prices: Prices | None) -> set[str]:
    return {model for model in models if prices is not None and prices.of(model) is None}


def _cost(hours: float | None, rate: float | None) -> float | None:
    return None if hours is None or rate is None else hours * rate


def _no_price(model: str) -> str:
    if model:
        return (
            f"What had GPUs of model {model} is without its cost: write its price at"
            f" kai-fleet:prices.gpuHour.{model}, or one for all others at {DEFAULT}."
        )
    return (
        "What had GPUs of a model that is not known is without its cost: write a price at"
        f" kai-fleet:prices.gpuHour.{DEFAULT}, or label nodes with {PRODUCT}; of nodes that are"
        " gone, kube-state-metrics tells it with --metric-labels-allowlist"
        f"=nodes=[{PRODUCT}]."
    )
