"""`fleet releases`: what is known."""

import json

from typer.testing import CliRunner

from kai_fleet.releases import KAI, TRIED, VCLUSTER, support
from kai_fleet_cli.app import app
from kai_fleet_cli.stack_file.reading import ROOT


def test_every_version_is_listed_with_its_support():
    ran = CliRunner().invoke(app, ["releases"])
    assert ran.exit_code == 0
    lines = ran.stdout.splitlines()
    for version in [*KAI, "v0.20.1"]:
        reported = f"KAI {version:<9} {support(KAI, version).words}"
        assert any(line.partition("; not advised")[0] == reported for line in lines)
    for version in VCLUSTER:
        reported = f"vCluster {version:<9} {support(VCLUSTER, version).words}"
        assert any(line.startswith(reported) for line in lines)
    assert "KAI v0.20.1   retracted: its chart is that of v0.10.2" in lines


def test_machines_get_the_same_dates():
    found = json.loads(CliRunner().invoke(app, ["releases", "--json"]).stdout)
    assert found["known"]["KAI"] == list(KAI)
    assert found["supportedUntil"]["KAI"]["v0.16.8"] == "2027-06-30"
    assert found["supportedUntil"]["KAI"]["v0.7.11"] is None
    assert found["supportedUntil"]["vCluster"]["v0.36.1"] == "2027-01-22"


def test_the_page_of_compatibility_has_what_was_tried():
    page = (ROOT / "docs/compatibility.md").read_text()
    head = "| vCluster | Kubernetes inside | KAI |\n|---|---|---|\n"
    rows = page.partition(head)[2].partition("\n\n")[0].splitlines()
    assert rows == [
        f"| {trial['vcluster']} | {trial['kubernetes']} | {', '.join(trial['kai'])} |"
        for trial in TRIED
    ]
