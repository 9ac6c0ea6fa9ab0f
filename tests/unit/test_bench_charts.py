"""Charts that are given to the benchmarks take the place of the sandbox's stand-ins."""

from pathlib import Path

import pytest
import typer

from bench import machine


def test_given_charts_go_over_those_of_the_same_name(tmp_path: Path) -> None:
    given, sandbox = tmp_path / "given", tmp_path / "sandbox"
    given.mkdir()
    sandbox.mkdir()
    (given / "kai-scheduler-v0.16.8.tgz").write_text("its own")
    (given / "README.md").write_text("no chart")
    (sandbox / "kai-scheduler-v0.16.8.tgz").write_text("stand-in")
    (sandbox / "vcluster-0.36.1.tgz").write_text("stand-in")

    told = machine.put_charts(machine.charts_in(given), sandbox)

    texts = {path.name: path.read_text() for path in sandbox.iterdir()}
    assert texts == {
        "kai-scheduler-v0.16.8.tgz": "its own",
        "vcluster-0.36.1.tgz": "stand-in",
    }
    assert told == "\n- Charts, not stand-ins: kai-scheduler-v0.16.8"


def test_without_a_folder_the_page_says_nothing_of_charts(tmp_path: Path) -> None:
    assert machine.put_charts(machine.charts_in(None), tmp_path) == ""


def test_a_folder_without_packages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match=r"holds no packaged chart; helm package writes"):
        machine.charts_in(tmp_path)
