"""GPU-hours of the last days against as many before, what they cost, and what stood idle."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

from kai_fleet.kube.objects import in_pool
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.monitoring import DEFAULT, PRODUCT
from kai_fleet_cli.doctor.cluster_state import Snapshot
from kai_fleet_cli.report.live import pool_name
from kai_fleet_cli.report.model import PeriodUse, UseOverTime, UseRow
from kai_fleet_cli.report.over_time import Hours, Period, Window, gpu_hours, whole_of
from kai_fleet_cli.report.prometheus import Query
from kai_fleet_cli.report.team_usage import GpuBalance, TeamUsageRow

PERIODS: Final = ("7d", "30d")
_NO_POOL: Final = "no labels of a pool"
_GONE: Final = "nodes that are gone"
_ANY: Final = "any node"
_LABEL: Final = "label_nvidia_com_gpu_product"  # of kube-state-metrics, where it is told to
_MODELS: Final = (
    f'last_over_time((max by (node, {_LABEL}) (kube_node_labels{{{_LABEL}!=""}}))[30d:1h])'
)
_SAME: Final = 1.05  # times what a KAI counts: more is more than samples differ by


def use_over_time(
    ask: Callable[[], Query], settings: Settings, look: Snapshot | None
) -> UseOverTime:
    """What the stack's Prometheus tells, by team and queue. Raises UnreachableError.

    `ask` opens the way to it, which has one time for all that is asked by it. The nodes of `look`
    tell models and pools.
    """
    nodes = _Nodes.of(look, ask())
    names, prices = [*settings.teams, *settings.team_stacks], settings.prices
    teams: dict[tuple[str, str], dict[str, PeriodUse]] = defaultdict(dict)
    idle: dict[str, dict[str, PeriodUse]] = defaultdict(dict)
    notes: list[str] = []
    unpriced: set[str] = set()

    def cost(hours: float | None, models: Hours) -> float | None:
        """At the average price of these models; None where one of them has none."""
        if hours is None or prices is None:
            return None
        unknown = {model for model in models if prices.of(model) is None}
        if unknown:
            unpriced.update(unknown if hours else ())
            return None
        whole = sum(models.values())
        every = sum(it * (prices.of(model) or 0.0) for model, it in models.items())
        return hours * every / whole if whole else 0.0

    for window in map(Window.of, PERIODS):
        period, earlier = (
            gpu_hours(ask(), settings, names, each) for each in (window, window.before)
        )
        notes += _notes(period)
        for row, former in zip(period.rows, earlier.rows, strict=True):
            models = nodes.models_of(row.team, period)
            compared = window.covered_by(min(row.measured, former.measured))
            of_before = _parts(former) if compared else {}
            for queue, gpus in _parts(row).items():
                used = None if row.unreached else gpus.used
                before = of_before[queue].used if queue in of_before else None
                uses = teams[row.team, queue]
                uses[window.since] = PeriodUse(used, before, cost(used, models))
        for pool, by_node in nodes.idle(period, of_host=settings.platform_facts is None).items():
            stood = sum(by_node.values())
            idle[pool][window.since] = PeriodUse(stood, cost=cost(stood, nodes.by_model(by_node)))
    if not idle:
        notes.append(
            "Idle GPUs, and the models that teams had, are not known: Prometheus has no numbers of"
            " kube-state-metrics."
        )
    return UseOverTime(
        PERIODS,
        prices.currency if prices else "",
        [UseRow(team, queue, uses) for (team, queue), uses in teams.items()],
        [UseRow(pool, "", uses) for pool, uses in sorted(idle.items())],
        [*notes, *map(_no_price, sorted(unpriced))],
    )


def _parts(row: TeamUsageRow) -> dict[str, GpuBalance]:
    """A team as "", and its queues. What pods have beside these is in the first only."""
    queues = {queue: gpus for queue, gpus in row.queues.items() if queue is not None}
    return {"": row.gpus, **queues}


@dataclass(frozen=True)
class _Nodes:
    """The models of nodes' GPUs, the pools of nodes that are there now, and those of teams.

    `others` is what nodes go by that are not among them.
    """

    models: Mapping[str, str]
    pools: Mapping[str, str]
    of_teams: Mapping[str, str]
    others: str

    @classmethod
    def of(cls, look: Snapshot | None, query: Query) -> Self:
        models = {labels.get("node", ""): labels.get(_LABEL, "") for labels, _ in query(_MODELS)}
        nodes = look.host.all("nodes") if look else ()
        teams = look.teams if look else {}
        wanted = {name: pool for name, it in teams.items() if (pool := it.wanted.node_pool)}
        pools = {
            node.name: next(
                (pool_name(pool) for pool in wanted.values() if in_pool(node.labels, pool)),
                _NO_POOL,
            )
            for node in nodes
        }
        models |= {node.name: model for node in nodes if (model := node.labels.get(PRODUCT))}
        of_teams = {name: pool_name(pool) for name, pool in wanted.items()}
        return cls(models, pools, of_teams, _GONE if look else _ANY)

    def by_model(self, hours: Hours) -> dict[str, float]:
        """GPU-hours of nodes by their models, "" for one that is not known."""
        models: dict[str, float] = defaultdict(float)
        for node, amount in hours.items():
            if amount:
                models[self.models.get(node, "")] += amount
        return models

    def models_of(self, team: str, period: Period) -> dict[str, float]:
        """On which models a team's GPU-hours were: by the whole GPUs that it held, else by the
        nodes of its pool, else by all nodes.
        """
        pool, capacity = self.of_teams.get(team), period.capacity
        of_pool = {node: it for node, it in capacity.items() if self.pools.get(node) == pool}
        every = (period.held.get(f"team-{team}", {}), of_pool, capacity)
        return next((models for hours in every if (models := self.by_model(hours))), {"": 1.0})

    def idle(self, period: Period, *, of_host: bool) -> dict[str, dict[str, float]]:
        """The whole GPUs that no pod held, by pool and node; `of_host`: of all pools."""
        idle: dict[str, dict[str, float]] = defaultdict(dict)
        for node, hours in period.capacity.items():
            pool = self.pools.get(node, self.others)
            if of_host or pool in self.of_teams.values():
                taken = sum(of.get(node, 0.0) for of in period.held.values())
                idle[pool][node] = max(0.0, hours - taken)
        return idle


def _notes(period: Period) -> Iterator[str]:
    """What was not measured, and where a team's own KAI says less than the host does."""
    window, hours = period.window, f"of the {period.window.hours:g} hours of {period.window.since}."
    if not window.covered_by(period.measured):
        yield f"Prometheus has numbers of {period.measured:.1f} {hours}"
    for row in period.rows:
        if row.unreached:
            yield f"Team {row.team} is not counted: {row.unreached}."
            continue
        if row.measured < period.measured and not window.covered_by(row.measured):
            yield f"Of team {row.team}, Prometheus has numbers of {row.measured:.1f} {hours}"
        held = whole_of(period.held, row.team)
        if row.mode == "virtual" and held > row.gpus.used * _SAME:
            yield (
                f"Team {row.team} held {held:,.1f} whole GPU-hours of the host in {window.since},"
                f" and its own KAI counts {row.gpus.used:,.1f}: the rest is free parts of shared"
                " GPUs, pods beside its queues, or a KAI that the team changed."
            )


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
