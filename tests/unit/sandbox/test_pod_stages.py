"""The stages that KWOK plays: how long pods take."""

import yaml

from sandbox.control_plane import command_lines


def delays(file):
    return {
        stage["metadata"]["name"]: stage["spec"].get("delay", {}).get("durationMilliseconds", 0)
        for stage in yaml.safe_load_all(file.read_text())
    }


def test_pods_are_running_at_once(tmp_path, monkeypatch):
    monkeypatch.delenv(command_lines.POD_SECONDS, raising=False)
    command_lines.ensure_stages(tmp_path)
    assert command_lines.stages(tmp_path) == command_lines.STAGES
    assert not list(tmp_path.iterdir())


def test_pods_take_their_time(tmp_path, monkeypatch):
    monkeypatch.setenv(command_lines.POD_SECONDS, "13")
    command_lines.ensure_stages(tmp_path)
    message = delays(command_lines.stages(tmp_path))
    assert (message["pod-running"], message["pod-gone"]) == (13000, 2000)
    assert message.keys() == delays(command_lines.STAGES).keys()
