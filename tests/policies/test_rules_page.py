from pathlib import Path

from kai_fleet_cli.reference.pages import rules_page
from kai_fleet_policies.rules import RULES

ROOT = Path(__file__).parents[2]


def test_the_page_says_what_the_rules_say():
    written = (ROOT / "docs" / "rules.md").read_text()
    assert written == rules_page(), "run: make reference"


def test_every_rule_says_what_it_demands_and_why():
    for rule in RULES:
        section = rules_page().partition(f"## {rule.name}\n")[2].partition("\n## ")[0]
        assert rule.about in section and len(rule.about) > 20
        assert rule.why in section and len(rule.why) > 40
