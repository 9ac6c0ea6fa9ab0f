"""How many lines each area of the product may have: an area that grows past its ceiling fails.

`wanted` is what version 0.4 is to come to. Where an area is above it, its ceiling is what it has
now: lower it with each change that shortens the area, and never raise it.
"""

from typing import NamedTuple

import pytest

from kai_fleet_cli.stack_file.reading import ROOT

COMPONENTS, POLICIES = "components/kai_fleet", "policies/kai_fleet_policies"
COMMANDS = "cli/kai_fleet_cli"


class Area(NamedTuple):
    """Folders and files, in lines of Python."""

    paths: tuple[str, ...]
    desired: int
    ceiling: int


def area(desired: int, ceiling: int, root: str, *paths: str) -> Area:
    return Area(tuple(f"{root}/{path}" for path in paths), desired, ceiling)


AREAS = {
    "settings": area(2300, 2549, COMPONENTS, "settings"),
    "fleet": area(
        500,
        1486,
        ".",
        f"{POLICIES}/model",
        f"{COMPONENTS}/arguments.py",
    ),
    "host, cluster, kind": area(
        800,
        940,
        COMPONENTS,
        *("cluster/kind", "host_access.py", "cluster/connection.py"),
        "cluster/tenant_kubeconfig.py",
        "gpu_stack.py",
        "existing.py",
    ),
    "isolation, guards": area(
        950, 1046, COMPONENTS, "guards", "team_namespace.py", "host_guards.py"
    ),
    "provider": area(400, 833, COMPONENTS, "cluster/provider"),
    "releases": area(800, 1007, COMPONENTS, "releases"),
    "probes": area(450, 783, COMPONENTS, "cluster/probes"),
    "kai, vcluster, program, team": area(
        1200,
        1686,
        COMPONENTS,
        *("program.py", "team.py", "virtual_cluster.py", "vcluster_kubeconfig.py"),
        *("vcluster_values.py", "kai_scheduler.py"),
        *("queue_tree.py", "queue_specs.py"),
    ),
    "monitoring": area(250, 239, COMPONENTS, "monitoring.py"),
    "rules, pack, adapters": area(
        2600, 2486, POLICIES, *("rules", "pack", "adapters", "validation.py")
    ),
    "commands, engine, display, recovery": area(
        1600, 2761, COMMANDS, "commands", "engine", "display", "recovery"
    ),
    "plan, diff": area(1000, 1112, COMMANDS, "plan", "diff"),
    "teams, stack_file": area(600, 668, COMMANDS, "teams", "stack_file"),
    "doctor": area(1600, 2523, COMMANDS, "doctor"),
    "report": area(700, 324, COMMANDS, "report"),
    "kubectl fleet": area(1600, 1837, "kubectl", "."),
    "sandbox": area(3400, 3509, "sandbox", "."),
    "bench": area(300, 300, ".", "bench.py"),
}
PRODUCT = ("components", "policies", "cli", "kubectl")
WANTED, CEILING = 20_000, 25_356


def lines(*paths: str) -> int:
    files = set()
    for path in paths:
        place = ROOT / path
        files |= {place} if place.is_file() else set(place.rglob("*.py"))
    return sum(len(file.read_text().splitlines()) for file in files)


@pytest.mark.parametrize("name", AREAS)
def test_an_area_stays_within_its_ceiling(name):
    found, (paths, desired, ceiling) = lines(*AREAS[name].paths), AREAS[name]
    assert 0 < found <= ceiling, f"{', '.join(paths)}: {found} lines; wanted are {desired}"


def test_the_product_stays_within_its_ceiling():
    rows = [f"{name:36} {lines(*item.paths):6} {item.desired:6}" for name, item in AREAS.items()]
    print("\n".join([f"{'area':36} {'now':>6} {'wanted':>6}", *rows]))
    assert lines(*PRODUCT) <= CEILING, f"wanted are {WANTED}"
