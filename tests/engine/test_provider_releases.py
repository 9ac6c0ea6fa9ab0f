"""Helm releases by the Kubernetes provider on PATH, official or stand-in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
from pulumi import automation

from tests.engine.bare_engine import Engine, changed

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def chart(directory: Path, version: str = "1.0.0") -> str:
    (directory / "templates").mkdir(parents=True, exist_ok=True)
    (directory / "Chart.yaml").write_text(
        f"apiVersion: v2\nname: small\nversion: {version}\nappVersion: '9'\n"
    )
    (directory / "templates" / "map.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\n"
        "metadata: {name: {{ .Release.Name }}}\n"
        "data: {value: {{ .Values.value | quote }}}\n"
        "{{ if .Values.wrong }}---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: Not_A_Name}\n{{ end }}\n"
    )
    return str(directory)


def test_a_release_is_installed_upgraded_and_uninstalled(
    engine: Engine, unique: str, tmp_path: Path
) -> None:
    path = tmp_path / "chart"
    hidden = f"hidden-{unique}"

    def program(value: str = "one", name: str = unique) -> None:
        made = k8s.helm.v3.Release(
            "release",
            chart=str(path),
            name=name,
            namespace=unique,
            create_namespace=True,
            timeout=30,
            values={"value": value, "password": pulumi.Output.secret(hidden)},
        )
        pulumi.export("status", made.status.status)
        pulumi.export("revision", made.status.revision)
        pulumi.export("version", made.status.version)

    def outputs() -> tuple[Any, ...]:
        found = engine.stack.outputs()
        return tuple(found[key].value for key in ("status", "revision", "version"))

    chart(path)
    assert engine.preview(program)["create"] == 2
    assert engine.kubectl("get", "namespace", unique, "--ignore-not-found") == ""
    engine.up(program)
    assert outputs() == ("deployed", 1, "1.0.0")
    assert engine.field(".data.value", "configmap", unique, "-n", unique) == "one"
    assert hidden not in engine.state() + engine.printed
    assert changed(engine.up(program)) == {}

    assert changed(engine.up(lambda: program("two"))) == {"update": 1}
    assert outputs() == ("deployed", 2, "1.0.0")
    assert engine.field(".data.value", "configmap", unique, "-n", unique) == "two"

    chart(path, "1.1.0")
    assert changed(engine.up(lambda: program("two"))) == {"update": 1}
    assert outputs() == ("deployed", 3, "1.1.0")

    engine.refresh()
    assert changed(engine.up(lambda: program("two"))) == {}

    assert changed(engine.up(lambda: program("two", f"{unique}b"))) == {"replace": 1}
    assert engine.kubectl("get", "configmap", unique, "-n", unique, "--ignore-not-found") == ""
    engine.destroy()
    secrets = engine.kubectl("get", "secret", "-n", unique, "-o", "name")
    assert "sh.helm.release" not in secrets
    engine.kubectl("delete", "namespace", unique)


def test_a_release_that_failed_is_completed_by_the_next_run(
    engine: Engine, unique: str, tmp_path: Path
) -> None:
    path = chart(tmp_path / "chart")

    def program(wrong: bool) -> None:
        k8s.helm.v3.Release(
            "release",
            chart=path,
            name=unique,
            namespace="default",
            timeout=60,
            values={"value": "x", "wrong": wrong},
        )

    assert "Not_A_Name" in engine.fails(lambda: program(True))
    engine.up(lambda: program(False))
    assert engine.field(".data.value", "configmap", unique, "-n", "default") == "x"
    assert changed(engine.up(lambda: program(False))) == {}


def test_a_release_uninstalled_by_hand_cannot_be_removed_before_a_refresh(
    engine: Engine, unique: str, tmp_path: Path
) -> None:
    path = chart(tmp_path / "chart")

    def program() -> None:
        k8s.helm.v3.Release(
            "release", chart=path, name=unique, namespace="default", values={"value": "x"}
        )

    engine.up(program)
    engine.tool("helm", "uninstall", unique, "--namespace", "default")
    text = engine.fails(lambda: None)
    assert f"uninstall: Release not loaded: {unique}: release: not found" in text
    engine.refresh()
    assert changed(engine.up(lambda: None)) == {}


def test_a_chart_that_is_not_there_is_said_at_preview(engine: Engine, tmp_path: Path) -> None:
    missing = tmp_path / "no-such-chart"

    with pytest.raises(automation.CommandError) as caught:
        engine.preview(lambda: k8s.helm.v3.Release("release", chart=str(missing)))
    assert "no-such-chart" in str(caught.value)
    assert "check the chart name and repository configuration" in str(caught.value)
