"""Whoever asks an API server is on the page that says how what tenants write is narrowed.

What asks is found by what it imports: the project's client of Kubernetes, the official one, a
client of HTTP, the engine's functions, other programs. A module that is handed what another one has
read is not found; that other one is.
"""

import ast
import re
from pathlib import Path

from kai_fleet_cli.stack_file.reading import ROOT

PRODUCT = {
    "kai_usage": "usage",
    "kubectl_fleet": "kubectl",
    "kai_fleet": "components",
    "kai_fleet_policies": "policies",
    "kai_fleet_stack": "stack",
    "kai_fleet_cli": "cli",
}
PAGE = ROOT / "docs" / "isolation.md"
HEADING = "## What is read from where a tenant can write"
WAYS = (
    *("kai_fleet.cluster.kube.api.Api", "kai_fleet.cluster.kube.kubeconfig"),
    *("kubernetes", "pulumi.runtime.invoke", "pulumi.runtime.invoke_output"),
    *("urllib3", "urllib.request", "requests", "http.client", "socket", "subprocess"),
    "lightkube.AsyncClient",
)
# These ask, and nothing that a tenant can write answers.
ELSEWHERE = {
    "kai_fleet_cli/diff/report.py": "git",
    "kai_fleet_cli/commands/init.py": "the operator's kubeconfig",
    "kai_fleet_cli/engine/workspace.py": "Pulumi's CLI",
    "kai_fleet_cli/hosts.py": "the operator's kubeconfig",
    "kai_fleet/cluster/kind/this_machine.py": "the operator's docker",
    "kai_fleet_stack/settings/team_stack.py": "the state of the platform's stack",
    "kai_fleet/ownership/deployed.py": "the stack's own state",
}


def imported(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


def makes_a_provider(tree: ast.Module) -> bool:
    """Whether the engine is given a way to a cluster there."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "Provider"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "kubernetes"
        for node in ast.walk(tree)
    )


def asks(file: Path) -> bool:
    tree = ast.parse(file.read_text())
    return makes_a_provider(tree) or any(
        name == way or name.startswith(f"{way}.") for name in imported(tree) for way in WAYS
    )


def path(name: str) -> Path:
    """The file of a module that is named from its package on."""
    return ROOT / PRODUCT[name.partition("/")[0]] / name


def readers() -> set[str]:
    """Every module that asks somebody, but for the client itself, which has a page's paragraph."""
    names = [
        file.relative_to(ROOT / folder).as_posix()
        for package, folder in PRODUCT.items()
        for file in (ROOT / folder / package).rglob("*.py")
    ]
    return {
        name
        for name in names
        if not name.startswith("kai_fleet/cluster/kube/") and asks(path(name))
    }


def on_the_page() -> dict[str, list[list[str]]]:
    """The rows that name a module, by module."""
    text = PAGE.read_text().partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    found: dict[str, list[list[str]]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        for module in re.findall(r"`([\w/]+\.py)`", cells[1] if len(cells) == 3 else ""):
            found.setdefault(module, []).append(cells)
    return found


def test_every_module_that_asks_a_cluster_is_on_the_page():
    unknown = readers() - on_the_page().keys() - ELSEWHERE.keys()
    assert unknown == set(), (
        f"{', '.join(sorted(unknown))}: say in docs/isolation.md, under {HEADING!r}, what it reads"
        " and how that is narrowed"
    )


def test_what_is_on_the_page_is_there():
    named = on_the_page()
    assert len(named) > 15
    assert [item for item in (*named, *ELSEWHERE) if not path(item).is_file()] == []
    assert named.keys() & ELSEWHERE.keys() == set()
    assert ELSEWHERE.keys() - readers() == set(), "these ask nobody any more"


def test_nobody_else_reads_the_secret_of_a_vcluster():
    """Its name is written in these modules only, and each gives its data to the one function."""
    named = {
        name
        for name in readers()
        if re.search(r"secrets/vc-|secrets/\{name\}", path(name).read_text())
    }
    # plugin.py hands it to vcluster_kubeconfig.py.
    assert named == {
        "kai_fleet_cli/doctor/read.py",
        "kai_fleet/cluster/probes/vcluster.py",
        "kai_fleet/cluster/probes/wait.py",
        "kai_fleet/provider/plugin.py",
    }
    for name in named - {
        "kai_fleet/cluster/probes/vcluster.py",
        "kai_fleet/provider/plugin.py",
    } | {
        "kai_fleet/vcluster/kubeconfig.py",
    }:
        names = imported(ast.parse(path(name).read_text()))
        assert any(".tenant_kubeconfig." in item for item in names), name
