"""Compare the offline plans of the checkout's stack files and of the guides with saved ones.

    python tests/unit/plan_golden.py save DIR
    python tests/unit/plan_golden.py compare DIR

`compare` prints each resource that came, went or changed, by type and name: a change of parents
alone is one line. Exit 1: something differs.
"""

import difflib
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FLEET = Path(sys.executable).with_name("fleet")
FILES = sorted([*ROOT.glob("Pulumi.*.yaml"), *(ROOT / "examples" / "guides").glob("Pulumi.*.yaml")])


def plan(file: Path) -> str:
    """The plan as JSON, the same text from every checkout."""
    command = [str(FLEET), "plan", "--format", "json", "--config", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(f"{file}: no plan: {done.stderr or done.stdout}")
    text = done.stdout.replace(str(ROOT), "<checkout>")
    return json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"


def by_name(text: str) -> dict[str, dict[str, Any]]:
    """Resources by type and name; what else the plan says by its key."""
    whole = json.loads(text)
    resources = {f"{found['type']} {found['name']}": found for found in whole.pop("resources")}
    return resources | {f"plan.{key}": {"value": value} for key, value in whole.items()}


def body(resource: dict[str, Any]) -> list[str]:
    """A resource without its place in the tree, as lines."""
    own = {key: value for key, value in resource.items() if key not in ("urn", "parent")}
    return json.dumps(own, indent=1).splitlines()


def differences(before: str, now: str) -> Iterator[str]:
    """One line for each resource that came, went or moved; the changed lines of the others."""
    old, new = by_name(before), by_name(now)
    yield from (f"- {name}" for name in old if name not in new)
    yield from (f"+ {name}" for name in new if name not in old)
    for name in (name for name in old if name in new):
        above, above_now = old[name].get("parent"), new[name].get("parent")
        if above != above_now:
            yield f"~ {name}: parent {above} → {above_now}"
        changed = list(difflib.unified_diff(body(old[name]), body(new[name]), lineterm="", n=2))
        if changed:
            yield from (f"~ {name}", *(f"    {line}" for line in changed[2:]))


def main(action: str, folder: Path) -> int:
    """Save the plans in a folder, or compare those of now with them."""
    folder.mkdir(parents=True, exist_ok=True)
    found = 0
    with ThreadPoolExecutor(2) as pool:
        for file, now in zip(FILES, pool.map(plan, FILES), strict=True):
            saved = folder / f"{file.stem}.json"
            if action == "save":
                saved.write_text(now)
                continue
            lines = list(differences(saved.read_text(), now)) if saved.exists() else ["+ this file"]
            found += len(lines)
            print(f"{file.name}: {'differs' if lines else 'the same'}", *lines, sep="\n  ")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("save", "compare"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
