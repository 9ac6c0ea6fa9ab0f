"""Many teams are recorded by two processes, and nobody can tell."""

import os

import pulumi
import pytest

from fleet import recording

QUEUE = {"gpu": {"quota": 1}, "cpu": {"quota": "unlimited"}, "memory": {"quota": "unlimited"}}


def settings(count):
    teams = {
        f"team{n}": {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": f"p{n}"},
            "gpus": 1,
            "queues": {"default": QUEUE},
        }
        for n in range(count)
    }
    return {"cluster": {"name": "lab", "context": "lab"}, "teams": teams}


@pytest.fixture
def processes(monkeypatch, tmp_path):
    """The numbers of those that ran the program."""
    ran = tmp_path / "ran"
    run = recording.runpy.run_path

    def noted(*args, **kwargs):
        with ran.open("a") as out:
            out.write(f"{os.getpid()}\n")
        return run(*args, **kwargs)

    monkeypatch.setattr(recording.runpy, "run_path", noted)

    def taken():
        found = set(ran.read_text().split())
        ran.unlink()
        return found

    return taken


def test_two_processes_record_what_one_does(monkeypatch, processes):
    monkeypatch.setattr(recording, "_can_fork", lambda: False)
    alone = recording.record("lab", settings(recording._MANY))
    assert len(processes()) == 1
    monkeypatch.setattr(recording, "_can_fork", lambda: True)
    halves = recording.record("lab", settings(recording._MANY))
    assert len(processes()) == 2
    assert [it.record() for it in halves] == [it.record() for it in alone]


def test_few_teams_need_no_second_process(monkeypatch, processes):
    monkeypatch.setattr(recording, "_can_fork", lambda: True)
    recording.record("lab", settings(2))
    assert len(processes()) == 1


def test_what_goes_wrong_in_the_second_process_is_said_in_the_first(monkeypatch):
    run, here = recording.runpy.run_path, os.getpid()

    def failing(*args, **kwargs):
        if os.getpid() != here:
            raise pulumi.RunError("no")
        return run(*args, **kwargs)

    monkeypatch.setattr(recording.runpy, "run_path", failing)
    monkeypatch.setattr(recording, "_can_fork", lambda: True)
    with pytest.raises(pulumi.RunError, match="no"):
        recording.record("lab", settings(recording._MANY))
