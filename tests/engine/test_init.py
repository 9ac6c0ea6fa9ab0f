"""`fleet init` on a live cluster, and then what it prints, as a person types it."""

import pytest

from tests.engine.product import copied
from tests.engine.sandbox_commands import typed

pytestmark = pytest.mark.engine


def test_each_command_that_it_prints_works_and_the_one_beside_a_secret(sandbox, tmp_path):
    folder = copied(tmp_path / "project")
    shell = {**sandbox.env(), "KAI_FLEET_SANDBOX": str(sandbox.directory)}
    first = typed(folder, ".venv/bin/fleet init day-one --context kai-fleet-sandbox", **shell)
    assert first.returncode == 0, first.stderr
    file = folder / "Pulumi.day-one.yaml"
    written = file.read_text()
    assert "nodePool: {kai-fleet/pool: research}" in written
    create, preview = (line for line in first.stdout.splitlines() if line.startswith("  "))
    password = next(line for line in written.splitlines() if "registries[" in line).strip(" #")
    ran = typed(folder, create, **shell)
    assert ran.returncode == 0, ran.stderr
    assert file.read_text().startswith(written)  # Pulumi leaves every comment where it is
    file.write_text(file.read_text().replace("#kai-fleet:registries", "kai-fleet:registries"))
    for command in (f"echo hidden | {password}", preview):
        ran = typed(folder, command, **shell)
        assert ran.returncode == 0, command + ran.stdout + ran.stderr
    assert "team research is created" in ran.stdout
