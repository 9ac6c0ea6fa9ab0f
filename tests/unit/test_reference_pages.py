"""The pages that are written from the code say what the code says."""

import html
import subprocess
import sys
from pathlib import Path

from kai_fleet_cli.reference import pages
from kai_fleet_cli.stack_file.reading import ROOT


def test_the_page_of_settings_is_up_to_date():
    written = (ROOT / "docs" / "settings.md").read_text()
    assert written == pages.settings_page(), "run: make reference"


def test_the_page_of_settings_has_every_key_of_every_model():
    page = pages.settings_page()
    for definition in pages.schema()["$defs"].values():
        for key in definition.get("properties", ()):
            assert f"| `{key}` |" in page


def test_a_key_says_what_may_be_written_what_holds_without_it_and_what_it_means():
    rows = pages.settings_page().splitlines()
    assert (
        "| `provider` | `operator`, `device-plugin`, `none` | `none` | `none` where nodes advertise"
        " GPUs already, or have none. |"
    ) in rows
    assert "| `scheduler` | [Scheduler](#scheduler) | **required** |  |" in rows


def test_the_page_of_commands_is_up_to_date(tmp_path):
    fresh = tmp_path / "commands.md"
    typer = Path(sys.executable).parent / "typer"
    words = ["utils", "docs", "--name", "fleet", "--title", "Commands", "--output", str(fresh)]
    subprocess.run(
        [typer, "kai_fleet_cli.__main__", *words],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    written = (ROOT / "docs" / "commands.md").read_text()
    assert written == html.unescape(fresh.read_text()), "run: make reference"
    assert "Print a team's kubeconfig" in written
