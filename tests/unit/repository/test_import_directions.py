"""Who may import whom: a package knows those below it, and no two know each other."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from kai_fleet_cli.stack_file.reading import ROOT

# From the bottom up.
FOLDERS = {
    "kai_usage": "usage",
    "kubectl_fleet": "kubectl",
    "kai_fleet": "components",
    "kai_fleet_policies": "policies",
    "kai_fleet_stack": "stack",
    "kai_fleet_cli": "cli",
}
ORDER = (
    "kai_usage",
    "kai_fleet",
    "kai_fleet_policies",
    "kai_fleet_stack",
    "sandbox",
    "kai_fleet_cli",
)
ALL = (*ORDER, "tests", "bench")


def folder_of(package: str) -> Path:
    return ROOT / FOLDERS.get(package.split(".")[0], "") / package.replace(".", "/")


def module_of(file: Path, package: str) -> list[str]:
    inside = file.relative_to(folder_of(package)).with_suffix("")
    return [package, *inside.parts]


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def imported(file: Path) -> Iterator[str]:
    """Modules, with each name of `from x import y` behind its module: a name may be one."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def owner(name: str) -> int:
    """The place in ALL of the innermost package that has a module; -1 where none has."""
    packages = [package for package in ALL if within(name, package)]
    return ALL.index(max(packages, key=len)) if packages else -1


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_nothing_above_it(package):
    level = ORDER.index(package)
    found = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in folder_of(package).rglob("*.py")
        for name in imported(file)
        if owner(".".join(module_of(file, package))) == level < owner(name)
    }
    assert found == set()


@pytest.mark.parametrize("package", ORDER)
def test_no_two_folders_of_a_package_import_each_other(package):
    folders = {item.name for item in folder_of(package).iterdir() if item.is_dir()}
    known: dict[str, set[str]] = defaultdict(set)
    for folder in folders:
        for file in (folder_of(package) / folder).rglob("*.py"):
            names = {name for name in imported(file) if within(name, package)}
            known[folder] |= {name.removeprefix(f"{package}.").split(".")[0] for name in names}
    both = {(a, b) for a in folders for b in known[a] & folders if a < b and a in known[b]}
    assert both == set()


def packages_imported_by(package: str) -> set[str]:
    files = folder_of(package).rglob("*.py")
    return {name.partition(".")[0] for file in files for name in imported(file)}


def test_the_plugin_of_kubectl_imports_what_counts_usage_alone():
    assert packages_imported_by("kubectl_fleet") & {*ORDER} == {"kai_usage"}
    importing = [name for name in ORDER if "kubectl_fleet" in packages_imported_by(name)]
    assert importing == []


def test_what_counts_usage_needs_no_client_of_kubernetes():
    others = packages_imported_by("kai_usage") - sys.stdlib_module_names
    assert others == {"kai_usage", "yaml"}
