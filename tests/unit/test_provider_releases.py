"""Releases over gRPC, with a helm that records what it is asked and answers by a script."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.rpc import UNKNOWN

from sandbox.providers.kubernetes import KubernetesStandIn
from tests.unit.standin_harness import (
    Driver,
    FakeApi,
    Json,
    Secret,
    driven,
    fake_api,
    fake_program,
    kubeconfig,
)

SCRIPT = r"""
cd "$(dirname "$0")"
echo "$*" >> calls
case "$1 $2" in
  "show chart") printf 'name: c\nversion: 1.2.3\ntype: %s\n' "$(cat type 2>/dev/null)";;
  "get metadata")
    if [ -f status ]; then
      printf '{"name":"r","namespace":"ns","chart":"c","version":"1.2.3","appVersion":"9",'
      printf '"revision":%s,"status":"%s"}' "$(cat revision)" "$(cat status)"
    else echo "Error: release: not found" >&2; exit 1; fi;;
  "uninstall "*)
    if [ -f status ]; then rm status
    else echo "Error: uninstall: Release not loaded: r: release: not found" >&2; exit 1; fi;;
  "get values") cat values 2>/dev/null || echo null;;
  "install "*|"upgrade "*)
    cat > values
    next=$(( $(cat revision 2>/dev/null || echo 0) + 1 ))
    if [ -f refuses ]; then echo "Error: INSTALLATION FAILED: $(cat refuses)" >&2; exit 1; fi
    echo $next > revision
    if [ -f broken ]; then
      echo failed > status
      echo 'Error: INSTALLATION FAILED: the server said no' >&2; exit 1
    fi
    echo deployed > status;;
esac
"""


class FakeHelm:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        fake_program(directory, "helm", SCRIPT)

    def has(self, **files: Any) -> None:
        for name, text in files.items():
            (self.directory / name).write_text(str(text))

    def calls(self, *verbs: str) -> list[str]:
        path = self.directory / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.split()[0] in verbs]

    def text(self, name: str) -> str:
        return (self.directory / name).read_text()


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHelm:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return FakeHelm(tmp_path)


@pytest.fixture
def api(helm: FakeHelm) -> Iterator[FakeApi]:
    with fake_api(helm.directory) as found:
        yield found


@pytest.fixture
def driver(helm: FakeHelm, api: FakeApi) -> Iterator[Driver]:
    with driven(KubernetesStandIn) as found:
        found.token = "kubernetes:helm.sh/v3:Release"
        found.configure(kubeconfig=kubeconfig(api.url, api.authority))
        yield found


def inputs(**more: Any) -> Json:
    return {"chart": "oci://registry.test/c", "name": "r", "namespace": "ns", **more}


def checked(driver: Driver, **more: Any) -> Json:
    found, failures = driver.check(inputs(**more))
    assert failures == []
    return found


def test_check_completes_the_inputs(driver: Driver) -> None:
    found, _ = driver.check({"chart": "oci://registry.test/c", "version": ">=1.0"})
    assert found["name"].startswith("it-")
    assert found["namespace"] == "default"
    assert found["timeout"] == 300
    assert found["version"] == "1.2.3"
    again, _ = driver.check({"chart": "oci://registry.test/c"}, found)
    assert again["name"] == found["name"]


def test_an_unknown_value_defers_the_look_at_the_chart(driver: Driver, helm: FakeHelm) -> None:
    found = checked(driver, version=">=1.0", values={"a": UNKNOWN})
    assert found["version"] == ">=1.0"
    assert helm.calls("show") == []


def test_install_passes_secrets_by_stdin_only(driver: Driver, helm: FakeHelm) -> None:
    values = {"password": Secret("hidden"), "replicas": 2, "off": None}
    news = checked(
        driver,
        version="1.2.3",
        values=values,
        createNamespace=True,
        repositoryOpts={"repo": "https://r.test"},
        chart="c",
    )
    resource_id, state = driver.create(news)
    assert resource_id == "ns/r"
    assert json.loads(helm.text("values")) == {"password": "hidden", "replicas": 2, "off": None}
    assert "hidden" not in helm.text("calls")
    [install] = helm.calls("install")
    for option in (
        "--version 1.2.3",
        "--repo https://r.test",
        "--create-namespace",
        "--timeout 300s",
        "--wait",
    ):
        assert option in install
    assert state["values"] == values
    assert isinstance(state["__inputs"], Secret)
    assert state["status"] == {
        "appVersion": "9",
        "chart": "c",
        "name": "r",
        "namespace": "ns",
        "revision": 1,
        "status": "deployed",
        "version": "1.2.3",
    }


def test_a_preview_installs_nothing(driver: Driver, helm: FakeHelm) -> None:
    resource_id, state = driver.create(checked(driver), preview=True)
    assert (resource_id, state["status"]) == ("", UNKNOWN)
    assert helm.calls("install", "upgrade") == []


def test_values_update_and_name_replaces(driver: Driver, helm: FakeHelm) -> None:
    news = checked(driver, values={"a": {"b": 1}})
    _, state = driver.create(news)
    assert driver.diff(state, news).changes == provider_pb2.DiffResponse.DIFF_NONE
    wanted = checked(driver, values={"a": {"b": 2}})
    answer = driver.diff(state, wanted)
    assert list(answer.detailedDiff) == ["values.a.b"]
    assert not answer.replaces
    assert driver.update("ns/r", state, wanted)["status"]["revision"] == 2
    assert json.loads(helm.text("values")) == {"a": {"b": 2}}
    assert list(driver.diff(state, checked(driver, namespace="other")).replaces) == ["namespace"]


def test_a_release_that_exists_is_not_taken_over(driver: Driver, helm: FakeHelm) -> None:
    helm.has(status="deployed", revision=1, refuses="cannot re-use a name that is still in use")
    text = driver.fails(driver.create, checked(driver))
    assert text == "cannot re-use a name that is still in use"
    assert helm.calls("uninstall") == []


def test_an_upgrade_that_never_ended_is_in_the_way(driver: Driver, helm: FakeHelm) -> None:
    busy = "another operation (install/upgrade/rollback) is in progress"
    helm.has(status="pending-upgrade", revision=4, refuses=busy)
    assert driver.fails(driver.update, "ns/r", {}, checked(driver)) == busy


def test_a_failed_install_is_in_the_state_and_says_why(driver: Driver, helm: FakeHelm) -> None:
    helm.has(broken="")
    text = driver.fails(driver.create, checked(driver))
    assert text == (
        'Helm release "ns/r" was created, but failed to initialize completely. Use Helm CLI to '
        "investigate: failed to become available within allocated timeout. Error: Helm Release "
        "ns/r: the server said no"
    )
    [warned] = driver.engine.messages
    assert warned.startswith('Helm release "r" was created but has a failed status.')
    text = driver.fails(driver.update, "ns/r", {}, checked(driver))
    assert text.startswith('Helm release "ns/r" failed to initialize completely.')


def test_a_refresh_sees_other_values_another_version_and_an_absent_release(
    driver: Driver, helm: FakeHelm
) -> None:
    news = checked(driver, values={"a": 1})
    _, state = driver.create(news)
    found, state, _ = driver.read("ns/r", state, news)
    assert found == "ns/r"
    assert driver.diff(state, news).changes == provider_pb2.DiffResponse.DIFF_NONE
    helm.has(values='{"a": 2}')
    _, state, _ = driver.read("ns/r", state, news)
    assert list(driver.diff(state, news).detailedDiff) == ["values.a"]
    (helm.directory / "status").unlink()
    assert driver.read("ns/r", state, news)[0] == ""


def test_uninstall_waits_unless_told_not_to(driver: Driver, helm: FakeHelm) -> None:
    for more in ({}, {"skipAwait": True}):
        helm.has(status="deployed", revision=1)
        driver.delete("ns/r", checked(driver, **more))
    waits, hurries = helm.calls("uninstall")
    assert "--wait --timeout 300s" in waits
    assert "--wait" not in hurries


def test_a_release_uninstalled_by_hand_cannot_be_removed(driver: Driver, helm: FakeHelm) -> None:
    text = driver.fails(driver.delete, "ns/r", checked(driver))
    assert text == "uninstall: Release not loaded: r: release: not found"
