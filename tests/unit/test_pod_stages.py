"""The stages that KWOK plays: how long pods take."""

import pytest
import yaml

from sandbox.control_plane import pod_stages


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setenv(pod_stages.POD_SECONDS, "13")


def delays(file):
    return {
        stage["metadata"]["name"]: stage["spec"].get("delay", {}).get("durationMilliseconds", 0)
        for stage in yaml.safe_load_all(file.read_text())
    }


def test_pods_are_running_at_once(tmp_path, monkeypatch):
    monkeypatch.delenv(pod_stages.POD_SECONDS, raising=False)
    pod_stages.ensure(tmp_path)
    assert pod_stages.played(tmp_path) == pod_stages.STAGES
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("slow")
def test_pods_take_their_time(tmp_path):
    pod_stages.ensure(tmp_path)
    told = delays(pod_stages.played(tmp_path))
    assert (told["pod-running"], told["pod-gone"]) == (13000, 2000)
    assert told.keys() == delays(pod_stages.STAGES).keys()


@pytest.mark.usefixtures("slow")
def test_another_time_is_written_anew(tmp_path, monkeypatch):
    pod_stages.ensure(tmp_path)
    monkeypatch.setenv(pod_stages.POD_SECONDS, "0.5")
    pod_stages.ensure(tmp_path)
    assert delays(pod_stages.played(tmp_path))["pod-running"] == 500
