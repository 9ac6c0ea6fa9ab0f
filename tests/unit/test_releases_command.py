"""`fleet releases`: what is known."""

from typer.testing import CliRunner

from kai_fleet.releases import KAI, VCLUSTER, support
from kai_fleet_cli.__main__ import app


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
