"""The pages that are written from the code say what the code says."""

from docs import reference
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies.rules import RULES


def test_the_page_of_settings_is_up_to_date():
    written = (ROOT / "docs" / "settings.md").read_text()
    assert written == reference.settings_page(), "run: make reference"


def test_the_page_of_settings_has_every_key_of_every_model():
    page = reference.settings_page()
    for definition in reference.schema()["$defs"].values():
        for key in definition.get("properties", ()):
            assert f"| `{key}` |" in page


def test_a_key_says_what_may_be_written_what_holds_without_it_and_what_it_means():
    rows = reference.settings_page().splitlines()
    assert (
        "| `provider` | `operator`, `device-plugin`, `none` | `none` | `none` where nodes advertise"
        " GPUs already, or have none. |"
    ) in rows
    assert "| `scheduler` | [Scheduler](#scheduler) | **required** |  |" in rows


def test_the_page_of_commands_is_up_to_date():
    written = (ROOT / "docs" / "commands.md").read_text()
    assert written == reference.commands_page(), "run: make reference"
    assert "Print a team's kubeconfig" in written


def test_the_page_of_rules_is_up_to_date():
    written = (ROOT / "docs" / "rules.md").read_text()
    assert written == reference.rules_page(), "run: make reference"


def test_every_rule_says_what_it_demands_and_why():
    page = reference.rules_page()
    for rule in RULES:
        section = page.partition(f"## {rule.name}\n")[2].partition("\n## ")[0]
        assert rule.about in section and len(rule.about) > 20
        assert rule.why in section and len(rule.why) > 40
