"""Plans and diffs for people at a terminal; colours only where the console is one."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from kai_fleet.finding import Finding, Level
from kai_fleet.fleet.chart_stores import REPLICAS, RESOURCES, default_resources, store_of
from kai_fleet.fleet.deployed_state import RELEASE
from kai_fleet.fleet.model import HOST
from kai_fleet.kube.text import without_controls
from kai_fleet.releases import DEFAULT_VCLUSTER
from kai_fleet.releases.chart_values import merged
from kai_fleet.values import value_at
from kai_fleet.wording import counted
from kai_fleet_cli.diff.consequences import HEADINGS, Hazard, by_hazard
from kai_fleet_cli.diff.report import SECRETS, DiffReport
from kai_fleet_cli.display.terminal import columns, told
from kai_fleet_cli.plan import summary
from kai_fleet_cli.plan.offline import Plan, with_queues
from kai_fleet_cli.plan.picture import Picture, picture
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.adapters import charts
from kai_fleet_policies.adapters.declared_trees import QUEUE

_SIGNS: Final = {
    "created": ("+", "green"),
    "changed": ("~", "yellow"),
    "replaced": ("±", "magenta"),
    "deleted": ("-", "red"),
}
_COLOURS: Final = {"refused": "red", "nothing changes": "green", "not compared": "yellow"}
_RISKS: Final = {Hazard.REFUSED: "red", Hazard.LOST: "red", Hazard.RESTARTS: "magenta"}
_MOST_OTHERS: Final = 10


def show_plan(
    plan: Plan, console: Console, *, details: bool = False, config: Path | None = None
) -> None:
    """Print a plan on a screen: what the rules say, then the teams; `details`: each resource.

    `config` is its stack file, where that is not the project's.
    """
    colour = "green" if plan.ok else "red"
    verdict = "fine" if plan.ok else "refused"
    _line(console, f"stack {plan.stack}: ", (verdict, colour), f" ({plan.counts})")
    for problem in sorted(plan.problems, key=lambda each: each.level is not Level.MANDATORY):
        show_problem(problem, console)
    if details:
        _plan_tree(plan, console)
    elif plan.resources:
        _overview(plan, console)
        every = counted(len(plan.resources), "resource")
        of_file = f" --config {shlex.quote(str(config))}" if config else ""
        console.print()
        command = f".venv/bin/fleet plan --stack {plan.stack}{of_file} --details"
        told(console, f"each of the {every}: {command}")


def show_diff(report: DiffReport, console: Console) -> None:
    """Print a diff: hazards and what else it means, then each resource, then what the rules say."""
    _line(console, (report.stack, "bold"), f": {report.base.ref} ({report.base.short}) → work tree")
    if report.note:
        told(console, report.note)
    for problem in report.base.problems if report.shows_stack else ():
        show_problem(problem, console, "at the base: ")
    if report.shows_stack and report.after.teams:
        _team_table(report.after, (), console)
    for hazard, group in by_hazard(report.sentences).items():
        colour = _RISKS[hazard] if hazard else ""
        _line(console, (HEADINGS[hazard], f"bold {colour}"))
        for sentence in group:
            lead = Text.assemble("  ", (f"{sentence.subject}:", "bold"))
            for part in sentence.parts:
                told(console, part.text, lead, indent=6)
                lead = Text("    ")
    if report.sentences and report.untouched:
        told(console, f"other teams untouched: {', '.join(report.untouched)}")
    for key, change in report.secrets.items():
        told(console, f"{key} {SECRETS[change]}")
    _changes(report, console)
    for problem in report.problems:
        show_problem(problem, console)
    _line(console, (report.verdict, _COLOURS.get(report.verdict, "")))


def show_problem(problem: Finding, console: Console, where: str = "") -> None:
    """Print one problem; `where` comes before its key."""
    mandatory = problem.level is Level.MANDATORY
    word, colour = ("refused", "red") if mandatory else ("warning", "yellow")
    lead = Text.assemble((word, colour), " ", (f"[{problem.check}]", "bold"))
    told(console, f"{where}{problem.path or problem.subject}", lead)
    told(console, problem.message, f"  {problem.subject}:", indent=4)


def _line(console: Console, *parts: str | tuple[str, str]) -> None:
    clean = (
        without_controls(part) if isinstance(part, str) else (without_controls(part[0]), part[1])
        for part in parts
    )
    console.print(Text.assemble(*clean), highlight=False, soft_wrap=True)


def _overview(plan: Plan, console: Console) -> None:
    """Teams, node pools and queues, a line each."""
    stack = picture(plan.resources)
    if stack.teams:
        _team_table(stack, plan.problems, console)
        pools = summary.pool_rows(stack)
        over = {at for at, pool in enumerate(pools) if pool.over}
        nodes, teams, *amounts = summary.POOL_COLUMNS
        columns((nodes, *amounts, teams), [_pool(pool) for pool in pools], console, over)
    trees = stack.trees()
    if trees:
        _line(console, ("\n  queues, with the GPUs that each is guaranteed", "dim"))
    for name, queues in trees.items():
        told(console, summary.queues_told(queues), f"  {name}:", indent=6)
    others = [it for it in map(_of_host_or_workload, plan.resources) if it]
    if others:
        console.print()
    for text in others[:_MOST_OTHERS]:
        told(console, text, "  ", indent=6)
    if len(others) > _MOST_OTHERS:
        _line(console, f"  … and {len(others) - _MOST_OTHERS} more")


def _team_table(stack: Picture, problems: Iterable[Finding], console: Console) -> None:
    """A line per team; those with something to look at first, and marked."""
    teams = summary.team_rows(stack, problems)
    marked = {at for at, row in enumerate(teams) if row[-1]}
    support = summary.TEAM_COLUMNS.index("support")  # for what has room
    headings, *rows = (
        [*row[:support], *row[support + 1 :]] for row in (summary.TEAM_COLUMNS, *teams)
    )
    columns([*headings[:-1], headings[-1] if marked else ""], rows, console, marked)


def _pool(pool: summary.PoolRow) -> list[str]:
    """By the columns, but the teams at the end: they may take several lines."""
    names = ", ".join(name or "any node" for name in pool.pools)
    teams, *amounts = pool.cells
    by_host = " (host's KAI)" if pool.by_host else ""
    return [f"{names}{by_host}", *amounts, teams]


def _of_host_or_workload(resource: Registered) -> str:
    """One of the platform's charts, or a workload, as a line; "" for every other resource."""
    kind = resource.type.rpartition(":")[2]
    if resource.type == RELEASE and "kai-fleet:index:Platform$" in resource.urn:
        chart = charts.chart_of(resource.inputs)
        return f"host: {chart.name} {chart.version}"
    if kind not in ("Pod", "Deployment"):
        return ""
    return f"{kind} {resource.name}: {_detail(resource.type, resource.inputs)}"


def _plan_tree(plan: Plan, console: Console) -> None:
    known = {resource.urn for resource in plan.resources}
    children = defaultdict[str, list[Registered]](list)
    for item in with_queues(plan.resources):
        children[item.parent if item.parent in known else ""].append(item)

    def grow(urn: str, depth: int) -> None:
        for item in sorted(children[urn], key=lambda item: (item.name, item.type)):
            kind = item.type.rpartition(":")[2]
            lead = Text.assemble("  " * depth, f"{kind} ", (item.name, "bold"))
            told(console, _detail(item.type, item.inputs), lead, indent=2 * depth + 4)
            grow(item.urn, depth + 1)

    grow("", 0)


def _detail(type_: str, inputs: Mapping[str, Any]) -> str:
    """The one thing about a resource that a reviewer looks for."""
    match type_:
        case "kubernetes:helm.sh/v3:Release":
            chart = f"{inputs.get('chart')} {inputs.get('version', '')}".strip()
            is_vcluster = str(inputs.get("chart")).rpartition("/")[2] == "vcluster"
            return f"{chart}: {_control_plane(inputs)}" if is_vcluster else chart
        case type_ if type_ == QUEUE:
            gpu = inputs["spec"]["resources"]["gpu"]
            return f"gpu quota {_amount(gpu['quota'])}, limit {_amount(gpu['limit'])}"
        case "kubernetes:core/v1:ResourceQuota":
            return ", ".join(f"{k}: {v}" for k, v in inputs["spec"]["hard"].items())
        case "kubernetes:core/v1:Pod":
            return _pod(inputs)
        case "kubernetes:apps/v1:Deployment":
            spec = inputs["spec"]
            return f"{counted(spec.get('replicas', 1), 'pod')}: {_pod(spec['template'])}"
        case "kubernetes:core/v1:Namespace":
            return str(inputs["metadata"]["name"])
    return ""


def _control_plane(inputs: Mapping[str, Any]) -> str:
    """What a vCluster's chart makes, its defaults included: `from to` are request and limit."""
    values, version = inputs.get("values") or {}, str(inputs.get("version") or DEFAULT_VCLUSTER)
    resources = merged(default_resources(version), value_at(values, RESOURCES) or {})
    shown = [
        f"{name} {' to '.join(amounts)}"
        for name in ("cpu", "memory")
        if (amounts := [str(it[name]) for it in resources.values() if name in it])
    ]
    pods = counted(int(value_at(values, REPLICAS) or 1), "pod")
    return ", ".join((pods, f"store {store_of(values).words}", *shown))


def _pod(pod: Mapping[str, Any]) -> str:
    """What a pod requests of GPUs, as its reader writes it."""
    annotations = pod["metadata"].get("annotations", {})
    requests = [f"{key} {value}" for key, value in annotations.items() if key.startswith("gpu-")]
    for container in pod["spec"]["containers"]:
        limits = container.get("resources", {}).get("limits", {})
        requests += [f"{key}: {value}" for key, value in limits.items() if key.endswith("/gpu")]
    return ", ".join(requests) or "no GPU"


def _amount(value: object) -> str:
    return "unlimited" if value == -1 else str(value)


def _changes(report: DiffReport, console: Console) -> None:
    """Every resource that differs, by team, with its fields."""
    changes = [(kind, it) for kind, part in report.shown.parts.items() for it in part]
    changes.sort(key=lambda each: (each[1].team, each[1].urn))
    if changes:
        _line(console, ("Resources", "bold"))
    for team, own in groupby(changes, key=lambda each: each[1].team):
        _line(console, "  ", (team or HOST, "bold"))
        for kind, change in own:
            sign, colour = _SIGNS[kind]
            why = f"{kind}{f': {change.reason}' if change.reason else ''}"
            told(console, f"{change.label} {why}", Text.assemble("    ", (sign, colour)), indent=8)
            for field in change.fields:
                shown = f"{field.path}: {' → '.join(field.shown())}"
                told(console, shown, "       ", indent=10)
    if report.left_out:
        _line(console, (f"  {report.left_out}", "dim"))
