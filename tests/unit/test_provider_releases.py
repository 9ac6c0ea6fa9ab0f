"""Releases over gRPC, with a helm that records what it is asked and answers by a script."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provider.protocol import provider_pb2
from provider.wire import UNKNOWN, Secret
from sandbox.providers.kubernetes import KubernetesPlugin
from tests.unit.provider_harness import (
    Driver,
    FakeApi,
    Json,
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
  "repo add") cat > password;;
  "uninstall "*) rm -f status;;
  "install "*|"upgrade "*)
    cat > values
    if [ -f broken ]; then
      echo failed > status; echo 1 > revision
      echo 'Error: INSTALLATION FAILED: the server said no' >&2; exit 1
    fi
    echo deployed > status; echo $(( $(cat revision 2>/dev/null || echo 0) + 1 )) > revision
    printf '{"name":"r","namespace":"ns","version":%s,' "$(cat revision)"
    printf '"info":{"status":"deployed"},'
    printf '"chart":{"metadata":{"name":"c","version":"1.2.3","appVersion":"9"}}}';;
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
def api(helm: FakeHelm, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """The cluster, with the Secrets that helm made in it."""
    answer = FakeApi.answer

    def with_records(self: FakeApi, method: str, target: str, body: Any) -> tuple[int, Json]:
        if (method, target.partition("?")[0]) != ("GET", "/api/v1/namespaces/ns/secrets"):
            return answer(self, method, target, body)
        assert target.endswith("?labelSelector=owner%3Dhelm%2Cname%3Dr")
        if not (helm.directory / "status").exists():
            return 200, {"items": None}  # as the API server says it
        now = {"version": helm.text("revision").strip(), "status": helm.text("status").strip()}
        ended = {"version": "0", "status": "superseded"}
        return 200, {"items": [{"metadata": {"labels": labels}} for labels in (now, ended)]}

    monkeypatch.setattr(FakeApi, "answer", with_records)
    with fake_api() as found:
        yield found


@pytest.fixture
def driver(helm: FakeHelm, api: FakeApi) -> Iterator[Driver]:
    with driven(KubernetesPlugin) as found:
        found.token = "kubernetes:helm.sh/v3:Release"
        found.configure(kubeconfig=kubeconfig(api.url))
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


def test_a_library_chart_is_refused(driver: Driver, helm: FakeHelm) -> None:
    helm.has(type="library")
    assert driver.check(inputs())[1] == ["chart is a library chart, which cannot be installed"]


def test_install_passes_secrets_by_stdin_only(driver: Driver, helm: FakeHelm) -> None:
    values = {"password": Secret("hidden"), "replicas": 2, "off": None}
    news = checked(
        driver,
        version="1.2.3",
        values=values,
        createNamespace=True,
        repositoryOpts={"repo": "https://r.test", "username": "u", "password": Secret("pass")},
        chart="c",
    )
    resource_id, state = driver.create(news)
    assert resource_id == "ns/r"
    assert json.loads(helm.text("values")) == {"password": "hidden", "replicas": 2, "off": None}
    assert helm.text("password") == "pass"
    assert "hidden" not in helm.text("calls")
    assert "pass" not in helm.text("calls").replace("--password-stdin", "")
    [install] = helm.calls("install")
    for option in ("--version 1.2.3", "--create-namespace", "--timeout 300s", "--wait"):
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


def test_a_release_of_somebody_else_is_not_taken_over(driver: Driver, helm: FakeHelm) -> None:
    helm.has(status="deployed", revision=1)
    text = driver.fails(driver.create, checked(driver))
    assert "Helm release ns/r exists already (chart c 1.2.3)" in text
    assert helm.calls("install", "uninstall") == []


@pytest.mark.parametrize("status", ["failed", "pending-install", "uninstalling"])
def test_what_is_left_of_a_failed_install_goes_first(
    driver: Driver, helm: FakeHelm, status: str
) -> None:
    helm.has(status=status, revision=1)
    driver.create(checked(driver))
    assert [call.split()[0] for call in helm.calls("uninstall", "install")] == [
        "uninstall",
        "install",
    ]


def test_an_upgrade_that_never_ended_is_unlocked(
    driver: Driver, helm: FakeHelm, api: FakeApi
) -> None:
    helm.has(status="pending-upgrade", revision=4)
    name = "sh.helm.release.v1.r.v4"
    path = f"/api/v1/namespaces/ns/secrets/{name}"
    api.objects[path] = {"metadata": {"name": name, "uid": "u"}}
    driver.update("ns/r", {}, checked(driver))
    assert path not in api.objects
    assert len(helm.calls("upgrade")) == 1


def test_a_failed_install_is_in_the_state_and_says_why(driver: Driver, helm: FakeHelm) -> None:
    helm.has(broken="")
    text = driver.fails(driver.create, checked(driver))
    assert text == "Helm release ns/r failed: INSTALLATION FAILED: the server said no"


def test_a_refresh_sees_a_failed_and_an_absent_release(driver: Driver, helm: FakeHelm) -> None:
    news = checked(driver)
    _, state = driver.create(news)
    helm.has(status="failed")
    found, state, _ = driver.read("ns/r", state, news)
    assert found == "ns/r"
    assert list(driver.diff(state, news).detailedDiff) == ["status"]
    (helm.directory / "status").unlink()
    assert driver.read("ns/r", state, news)[0] == ""


def test_uninstall_waits_unless_told_not_to(driver: Driver, helm: FakeHelm) -> None:
    driver.delete("ns/r", checked(driver))
    driver.delete("ns/r", checked(driver, skipAwait=True))
    waits, hurries = helm.calls("uninstall")
    assert "--ignore-not-found" in waits
    assert "--wait" in waits
    assert "--wait" not in hurries


def test_an_unreachable_cluster_is_one_sentence(
    helm: FakeHelm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.providers.rest._RECONNECT_SECONDS", 0.0)
    with driven(KubernetesPlugin) as driver:
        driver.token = "kubernetes:helm.sh/v3:Release"
        driver.configure(kubeconfig=kubeconfig("http://127.0.0.1:1"))
        text = driver.fails(driver.create, inputs(timeout=1))
    assert text.startswith("the Helm release cannot be deployed:")
    assert "is unreachable" in text
