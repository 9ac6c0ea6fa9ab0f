"""A plan for people: a tree of resources, then what the rules say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from kai_fleet.wording import counted
from kai_fleet_cli.display import queue_items
from kai_fleet_cli.display.queue_items import with_queues
from kai_fleet_cli.plan.offline import Plan
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.problem import Level


def show(plan: Plan, console: Console) -> None:
    """Print a plan; colours only where `console` is a terminal."""
    if plan.resources:
        console.print(_tree(plan))
    for problem in plan.problems:
        console.print(line(problem.record()), highlight=False, soft_wrap=True)
    refused = sum(p.level is Level.MANDATORY for p in plan.problems)
    warned = len(plan.problems) - refused
    found = {"resource": len(plan.resources), "problem": refused, "warning": warned}
    count = ", ".join(counted(number, thing) for thing, number in found.items())
    verdict = "[green]fine[/]" if plan.ok else "[red]refused[/]"
    console.print(f"stack {escape(plan.stack)}: {verdict} ({count})", highlight=False)


def _tree(plan: Plan) -> Tree:
    children: dict[str, list[Registered]] = {}
    known = {resource.urn for resource in plan.resources}
    for resource in _shown(plan):
        parent = resource.parent if resource.parent in known else ""
        children.setdefault(parent, []).append(resource)
    root = Tree(f"[bold]{escape(plan.stack)}[/]", highlight=False)

    def grow(branch: Tree, urn: str) -> None:
        for resource in sorted(children.get(urn, []), key=lambda r: (r.name, r.type)):
            grow(branch.add(_label(resource)), resource.urn)

    grow(root, "")
    return root


def _shown(plan: Plan) -> list[Registered]:
    records = with_queues(resource.record() for resource in plan.resources)
    return [Registered(**record) for record in records]


def _label(resource: Registered) -> str:
    kind = resource.type.rsplit(":", 1)[-1]
    text = f"{kind} [bold]{escape(resource.name)}[/]"
    detail = _detail(resource)
    return f"{text} [dim]{escape(detail)}[/]" if detail else text


def _detail(resource: Registered) -> str:
    """The one thing about a resource that a reviewer looks for."""
    inputs = resource.inputs
    match resource.type:
        case "kubernetes:helm.sh/v3:Release":
            return f"{inputs.get('chart')} {inputs.get('version', '')}".strip()
        case queue_items.QUEUE:
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


def _pod(annotations: Mapping[str, str], spec: Mapping[str, Any]) -> str:
    """What a pod asks of GPUs, as its reader writes it."""
    asked = [f"{key} {value}" for key, value in annotations.items() if key.startswith("gpu-")]
    for container in spec["containers"]:
        limits = container.get("resources", {}).get("limits", {})
        asked += [f"{key}: {value}" for key, value in limits.items() if key.endswith("/gpu")]
    return ", ".join(asked) or "no GPU"


def _amount(value: object) -> str:
    return "unlimited" if value == -1 else str(value)


def line(problem: Mapping[str, str], where: str = "") -> str:
    """One problem of a plan's record, in rich's markup; `where` comes before its key."""
    mandatory = problem["level"] == Level.MANDATORY
    word = "[red]refused[/]" if mandatory else "[yellow]warning[/]"
    rule, place = f"[{problem['rule']}]", problem["path"] or problem["subject"]
    return (
        f"{word} [bold]{escape(rule)}[/] {escape(where + place)}\n"
        f"  {escape(problem['subject'])}: {escape(problem['message'])}"
    )
