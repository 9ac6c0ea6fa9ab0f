"""Plans and diffs for people at a terminal; colours only where the console is one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from kai_fleet.fleet.control_plane import REPLICAS, RESOURCES, default_resources
from kai_fleet.fleet.model import HOST
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.vcluster_store import at, store_of
from kai_fleet_cli.plan.offline import Plan, with_queues
from kai_fleet_cli.plan.picture import Picture
from kai_fleet_policies.adapters.declared_trees import QUEUE
from kubectl_fleet.kube.text import plain
from kubectl_fleet.releases import DEFAULT_VCLUSTER
from kubectl_fleet.rules.problem import Level
from kubectl_fleet.wording import counted

if TYPE_CHECKING:
    from kai_fleet_cli.diff.changes import FieldChange, ResourceChange
    from kai_fleet_cli.diff.report import DiffReport
    from kai_fleet_cli.report.model import StackReport

_SIGNS: Final = {
    "created": "[green]+[/]",
    "changed": "[yellow]~[/]",
    "replaced": "[magenta]±[/]",
    "deleted": "[red]-[/]",
}
_COLOURS: Final = {"refused": "red", "nothing changes": "green", "not compared": "yellow"}


def show_plan(plan: Plan, console: Console) -> None:
    """Print a plan: a tree of resources, then what the rules say."""
    if plan.resources:
        console.print(_plan_tree(plan))
    for problem in plan.problems:
        _line(console, problem_line(problem.record()))
    verdict = "[green]fine[/]" if plan.ok else "[red]refused[/]"
    console.print(f"stack {escape(plan.stack)}: {verdict} ({plan.counts})", highlight=False)


def show_diff(report: DiffReport, console: Console) -> None:
    """Print a diff: what it means, then resource by resource, then what the rules say."""
    about = f"{escape(report.base.ref)} ({report.base.short}) → work tree"
    _line(console, f"[bold]{escape(report.stack)}[/]: {about}")
    if report.note:
        _line(console, escape(report.note))
    for problem in report.base.problems if report.shows_stack else ():
        _line(console, problem_line(problem, "at the base: "))
    if report.shows_stack and report.after.teams:
        console.print(_team_table(report.after))
    for sentence in report.sentences:
        _line(console, f"[bold]{escape(sentence.subject)}[/]: {escape(sentence.parts[0])}")
        for part in sentence.parts[1:]:
            _line(console, f"{' ' * (len(sentence.subject) + 2)}{escape(part)}")
    if report.sentences and report.untouched:
        _line(console, f"other teams untouched: {escape(', '.join(report.untouched))}")
    for key in report.encrypted_anew:
        _line(console, f"{escape(key)} is encrypted anew: only the engine can say if it changed")
    if not report.difference.same:
        console.print(_diff_tree(report))
    for problem in report.problems:
        _line(console, problem_line(problem))
    colour = _COLOURS.get(report.verdict)
    _line(console, f"[{colour}]{report.verdict}[/]" if colour else report.verdict)


def show_report(report: StackReport, console: Console) -> None:
    """Print a report, without its queue trees."""
    from kai_fleet_cli.report.sections import sections, summary

    _line(console, f"[bold]GPUs of stack {escape(report.stack)}[/]")
    for text in summary(report):
        _line(console, escape(plain(text)))
    for section in sections(report):
        if section.rows:
            table = Table(
                box=box.SIMPLE_HEAD, pad_edge=False, title=section.title, title_justify="left"
            )
            for heading, *cells in zip(section.headings, *section.rows, strict=True):
                if len(table.columns) < section.words:
                    table.add_column(heading, overflow="fold")
                else:  # a number stays on its line
                    table.add_column(heading, justify="right", min_width=max(map(len, cells)))
            for row in section.rows:
                table.add_row(*(escape(plain(cell)) for cell in row))
            console.print(table)
        else:
            _line(console, f"\n{section.title}: none")
        for sentence in section.sentences:
            _line(console, f"[dim]{escape(plain(sentence))}[/]")


def problem_line(problem: Mapping[str, str], where: str = "") -> str:
    """One problem of a plan's record, in rich's markup; `where` comes before its key."""
    mandatory = problem["level"] == Level.MANDATORY
    word = "[red]refused[/]" if mandatory else "[yellow]warning[/]"
    rule, place = f"[{problem['rule']}]", problem["path"] or problem["subject"]
    return (
        f"{word} [bold]{escape(rule)}[/] {escape(where + place)}\n"
        f"  {escape(problem['subject'])}: {escape(problem['message'])}"
    )


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _team_table(stack: Picture) -> Table:
    """One line per team: who schedules it, on what, with how many GPUs and queues."""
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("team", "mode", "scheduler", "vCluster", "nodes", "GPUs", "queues"):
        table.add_column(column, justify="right" if column in ("GPUs", "queues") else "left")
    for team in stack.teams.values():
        table.add_row(
            escape(team.name),
            team.mode or "-",
            escape(team.scheduler),
            team.vcluster or "-",
            escape(team.pool) or "any",
            "-" if team.gpus is None else f"{team.gpus:g}",
            str(len(team.inside.queues)) if team.inside.queues else "-",
        )
    return table


def _plan_tree(plan: Plan) -> Tree:
    known = {resource.urn for resource in plan.resources}
    children: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for item in with_queues(resource.record() for resource in plan.resources):
        children[item["parent"] if item["parent"] in known else ""].append(item)
    root = Tree(f"[bold]{escape(plan.stack)}[/]", highlight=False)

    def grow(branch: Tree, urn: str) -> None:
        for item in sorted(children[urn], key=lambda item: (item["name"], item["type"])):
            kind, detail = item["type"].rsplit(":", 1)[-1], _detail(item["type"], item["inputs"])
            text = f"{kind} [bold]{escape(item['name'])}[/]"
            grow(branch.add(f"{text} [dim]{escape(detail)}[/]" if detail else text), item["urn"])

    grow(root, "")
    return root


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
            return _pod(inputs["metadata"].get("annotations", {}), inputs["spec"])
        case "kubernetes:apps/v1:Deployment":
            template = inputs["spec"]["template"]
            each = _pod(template["metadata"].get("annotations", {}), template["spec"])
            return f"{counted(inputs['spec'].get('replicas', 1), 'pod')}: {each}"
        case "kubernetes:core/v1:Namespace":
            return str(inputs["metadata"]["name"])
    return ""


def _control_plane(inputs: Mapping[str, Any]) -> str:
    """What a vCluster's chart makes, its defaults included: `from to` are request and limit."""
    values, version = inputs.get("values") or {}, str(inputs.get("version") or DEFAULT_VCLUSTER)
    resources = merged(default_resources(version), at(values, RESOURCES) or {})
    shown = [
        f"{name} {' to '.join(str(it[name]) for it in resources.values() if name in it)}"
        for name in ("cpu", "memory")
        if any(name in it for it in resources.values())
    ]
    pods = counted(int(at(values, REPLICAS) or 1), "pod")
    return ", ".join((pods, f"store {store_of(values).words}", *shown))


def _pod(annotations: Mapping[str, str], spec: Mapping[str, Any]) -> str:
    """What a pod requests of GPUs, as its reader writes it."""
    requests = [f"{key} {value}" for key, value in annotations.items() if key.startswith("gpu-")]
    for container in spec["containers"]:
        limits = container.get("resources", {}).get("limits", {})
        requests += [f"{key}: {value}" for key, value in limits.items() if key.endswith("/gpu")]
    return ", ".join(requests) or "no GPU"


def _amount(value: object) -> str:
    return "unlimited" if value == -1 else str(value)


def _diff_tree(report: DiffReport) -> Tree:
    root = Tree("changes", highlight=False)
    branches: dict[str, Tree] = {}
    entries = [
        (change.team, change.urn, kind, change)
        for kind, part in report.difference.parts.items()
        for change in part
    ]
    for team, _, kind, change in sorted(entries, key=lambda entry: entry[:3]):
        if team not in branches:
            branches[team] = root.add(f"[bold]{escape(team or HOST)}[/]")
        leaf = branches[team].add(_change(kind, change))
        for field in change.fields:
            leaf.add(_field(field))
    return root


def _change(kind: str, change: ResourceChange) -> str:
    reason = f" [dim]{escape(change.reason)}[/]" if change.reason else ""
    return f"{_SIGNS[kind]} {escape(change.label)} {kind}{reason}"


def _field(field: FieldChange) -> str:
    old, new = ("unset" if it is None else escape(str(it)) for it in (field.old, field.new))
    return f"{escape(field.path)}: [red]{old}[/] → [green]{new}[/]"
