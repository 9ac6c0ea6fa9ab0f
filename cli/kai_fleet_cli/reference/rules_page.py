"""The page about the rules, from what the rules say of themselves: docs/rules.md.

Written with `python -m kai_fleet_cli.reference.rules_page > docs/rules.md`; a test compares them.
What stands around them is in `rules_page.template`.
"""

from pathlib import Path
from string import Template
from typing import Final

from kai_fleet_policies.pack.policies import EXEMPT_KEY, QUEUES_KEY, RESERVED_KEY, schema
from kai_fleet_policies.rules import RULES, Rule
from kubectl_fleet.rules import name_of
from kubectl_fleet.rules.queue_tree import CHART_PARENT, EXISTING_QUEUES

_TEMPLATE: Final = Path(__file__).with_name("rules_page.template")


def page() -> str:
    """The whole page."""
    rows = [f"| [`{name_of(r)}`](#{name_of(r)}) | {r.LEVEL} | {r.SEVERITY} |" for r in RULES]
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        rows="\n".join(rows),
        sections="\n".join(map(_section, RULES)),
        exempt_key=EXEMPT_KEY,
        queues_key=QUEUES_KEY,
        reserved_key=RESERVED_KEY,
        existing_queues=EXISTING_QUEUES,
        chart_parent=CHART_PARENT,
    )


def _section(rule: Rule) -> str:
    what = (rule.__doc__ or "").strip()  # a rule is a module
    keys = ", ".join(f"`{key}`" for key in schema(name_of(rule)))
    return "\n".join(
        [
            f"## {name_of(rule)}\n",
            f"{what} ({rule.LEVEL}, severity {rule.SEVERITY})\n",
            f"Why: {rule.WHY}\n",
            f"Remedy: {rule.REMEDY}\n",
            *([f"Configuration: {keys}.\n"] if keys else []),
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
