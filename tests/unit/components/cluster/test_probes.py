"""How a probe is found, which cluster it asks, how it fails, and what it takes away again."""

import os
import re
import subprocess
import time
from datetime import UTC, datetime

import pytest

from kai_fleet.cluster import probes
from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError
from kai_fleet.cluster.probes import __main__ as fleet_probe
from kai_fleet.cluster.probes import kai, wait
from kai_fleet.cluster.probes.kai import MANAGER, _without_ours
from kai_fleet_cli.stack_file.reading import ROOT
from tests.unit.components.cluster import canned_api, vcluster_secrets

HOST = "https://host:6443"


class Host:
    """What the host answers, and what it was asked for."""

    def __init__(self):
        self.answer = {"data": vcluster_secrets.data()}
        self.paths = []

    def get(self, api, path):
        self.paths.append((api.host, path))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def host(monkeypatch):
    host = Host()
    monkeypatch.setattr(wait.Api, "get", lambda api, path: host.get(api, path))
    monkeypatch.setenv("PROBE_KUBECONFIG", canned_api.kubeconfig(HOST))
    return host


def within(monkeypatch):
    monkeypatch.setenv("PROBE_SECRET", "team-ml/vc-ml")
    monkeypatch.setenv("PROBE_SERVER", "https://1.2.3.4:31000")
    return wait.cluster()


def test_a_probe_asks_the_host_or_the_vcluster_of_a_secret_there(host, monkeypatch):
    assert wait.cluster().host == HOST
    assert host.paths == []
    assert within(monkeypatch).host == "https://1.2.3.4:31000"
    assert host.paths == [(HOST, "/api/v1/namespaces/team-ml/secrets/vc-ml")]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (RefusedError(404, "Not Found"), "the API answers 404 Not Found"),
        (UnreachableError("nobody answers"), "the API does not answer: nobody answers"),
    ],
)
def test_a_secret_that_is_of_no_use_is_named(host, monkeypatch, answer, words):
    host.answer = answer
    with pytest.raises(wait.NotReadyError) as reported:
        within(monkeypatch)
    assert str(reported.value) == (
        f"Secret vc-ml of namespace team-ml cannot be read: {words}. Look with: kubectl -n team-ml"
        " get secrets,statefulsets"
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeyError("metadata"), "its API server answers what no Kubernetes does (KeyError)"),
        (UnreachableError("nobody answers"), "the API does not answer: nobody answers"),
        (RefusedError(403, "No", b'{"message": "why"}'), "the API answers 403 No: why"),
    ],
)
def test_a_probe_that_fails_ends_in_a_sentence(monkeypatch, error, sentence):
    def fail():
        raise error

    monkeypatch.setattr(fleet_probe, "PROBES", {"odd": fail})
    monkeypatch.setattr("sys.argv", ["fleet-probe", "odd"])
    with pytest.raises(SystemExit, match=re.escape(sentence)):
        fleet_probe.main()


INSIDE = {"PROBE_SECRET": "team-ml/vc-ml", "PROBE_SERVER": "https://1.2.3.4:31000"}


@pytest.mark.parametrize(
    ("probe", "variables", "missing"),
    [
        ("kai wait", {}, "KAI_VERSION"),
        ("kai wait", {"KAI_VERSION": "v0.16.8"}, "KAI_TIMEOUT"),
        ("kai wait", {"KAI_VERSION": "v0.16.8", **INSIDE}, "PROBE_PLACE"),
        ("shards apply", {}, "KAI_OBJECTS"),
        ("vcluster wait", {}, "VCLUSTER_NAME"),
        ("vcluster clean-up", {}, "PODS_NAMESPACE"),
        ("vcluster clean-up", {"PROBE_SECRET": "team-ml/vc-ml"}, "PODS_NAMESPACE"),
        ("shards apply", {"PROBE_SECRET": "team-ml/vc-ml"}, "PROBE_SERVER"),
    ],
)
def test_a_probe_without_one_of_its_variables_names_it(
    host, monkeypatch, probe, variables, missing
):
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr("sys.argv", ["fleet-probe", *probe.split()])
    with pytest.raises(SystemExit, match=f"{missing} is not set"):
        fleet_probe.main()


SAYS = '#!/bin/sh\necho "$0" "$@"\n'


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ((".venv/bin", "other"), ".venv/bin"),
        (("venv/bin", "other"), "venv/bin"),
        (("other",), "{here}/other"),
    ],
)
def test_it_is_in_the_environment_of_the_project_or_else_on_path(tmp_path, places, found):
    for place in places:
        probe = tmp_path / place / "fleet-probe"
        probe.parent.mkdir(parents=True)
        probe.write_text(SAYS)
        probe.chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'other'}:{os.defpath}", "HOME": str(tmp_path / "nobody")}
    command = ["/bin/sh", "-c", probes.command("kai wait")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{found.format(here=tmp_path)}/fleet-probe kai wait\n"


def test_no_text_of_a_state_names_a_folder_of_this_machine():
    for probe in fleet_probe.PROBES:
        assert str(ROOT) not in probes.command(probe)


class Kai:
    """A cluster with a part of KAI that waits for a node, or without any KAI."""

    def __init__(self, *deployments):
        self.deployments = deployments

    def restart_limits(self, seconds):
        """Each round of questions has its time."""

    def find(self, path):
        assert path == "/api/v1/namespaces/kai-scheduler"
        return {}

    def list(self, path, **query):
        short = {"type": "PodScheduled", "message": "0/1 nodes: 1 Insufficient cpu."}
        status = {"phase": "Pending", "conditions": [short]}
        pods = [{"metadata": {"name": name}, "status": status} for name in ("binder-1", "hook-2")]
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        nodes = [{"metadata": {"name": "n"}, "status": ready}]
        parts = [{"metadata": {"name": name}} for name in self.deployments]
        return {"deployments": parts, "pods": pods, "nodes": nodes}.get(path.rpartition("/")[2], [])


class KilledKai(Kai):
    """A KAI whose binder was killed for memory."""

    def list(self, path, **query):
        if not path.endswith("/pods"):
            return super().list(path, **query)
        last = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
        container = {"name": "c", "restartCount": 3, "state": {"waiting": {}}, "lastState": last}
        status = {"phase": "Running", "containerStatuses": [container]}
        return [{"metadata": {"name": "binder-1"}, "status": status}]


def test_a_version_that_nobody_tried_is_waited_for_like_others(monkeypatch):
    values = {"DEPLOYMENTS": "binder", "VERSION": "v0.99.0", "TIMEOUT": "0.1"}
    for name, value in values.items():
        monkeypatch.setenv(f"KAI_{name}", value)
    monkeypatch.setenv("PROBE_SECRET", "team-ml/vc-ml")
    monkeypatch.setenv("PROBE_PLACE", "kai-fleet:teams.ml")
    monkeypatch.setattr(kai, "cluster", lambda: KilledKai("binder"))
    with pytest.raises(wait.NotReadyError, match="killed for memory"):
        kai.wait()


@pytest.mark.parametrize(
    ("secret", "place", "key"),
    [
        ("team-ml/vc-ml", "kai-fleet:teams.ml", "kai-fleet:teams.ml.scheduler.values"),
        ("team-ml/vc-ml", "kai-fleet:team", "kai-fleet:team.scheduler.values"),
        ("team-ml/vc-ml", "VirtualCluster ml", "VirtualCluster ml"),
        ("", "", "kai-fleet:kai.values"),
    ],
)
def test_a_kai_that_waits_says_why_and_one_that_is_gone_is_not_waited_for(
    monkeypatch, secret, place, key
):
    values = {"DEPLOYMENTS": "binder", "VERSION": "v0.16.8", "TIMEOUT": "0.1"}
    for name, value in values.items():
        monkeypatch.setenv(f"KAI_{name}", value)
    monkeypatch.setenv("PROBE_SECRET", secret)
    monkeypatch.setenv("PROBE_PLACE", place)
    monkeypatch.setattr(kai, "cluster", lambda: Kai("binder"))
    with pytest.raises(wait.NotReadyError) as ended:
        kai.wait()
    short = f"no node has enough cpu left: add one, or ask for less at {key}"
    missing = f"deployment binder; pods binder-1 and hook-2: {short}"
    assert f"Missing: {missing}. Look with: kubectl -n kai-scheduler" in str(ended.value)
    monkeypatch.setattr(kai, "cluster", Kai)
    monkeypatch.setenv("KAI_TIMEOUT", "600")
    with pytest.raises(
        wait.NotReadyError, match="KAI of namespace kai-scheduler is gone, as after"
    ):
        kai.wait()


@pytest.mark.parametrize("chart", ["v0.16.8", "0.16.8", "v0.14.7"])
def test_a_kai_of_another_chart_is_not_waited_for(monkeypatch, chart):
    """Its parts may have the same names."""
    monkeypatch.setenv("KAI_VERSION", "v0.16.8")
    monkeypatch.setenv("KAI_CHART", chart)
    monkeypatch.setattr(kai, "until_ready", lambda *_: None)
    monkeypatch.setenv("KAI_TIMEOUT", "600")
    monkeypatch.setattr(kai, "cluster", Kai)
    if chart.endswith("0.16.8"):
        kai.wait()
        return
    with pytest.raises(wait.NotReadyError, match=r"its chart is of KAI v0\.14\.7, and not of v"):
        kai.wait()


class Unmounted(Kai):
    """A cluster whose scheduler mounts a ConfigMap that somebody deleted."""

    began = "2026-01-01T00:00:00Z"

    def list(self, path, **query):
        names = ({"name": "scheduler-config"}, {"name": "more", "optional": True})
        volumes = [{"emptyDir": {}}, *({"configMap": each} for each in names)]
        pod = {"metadata": {"name": "scheduler-1", "namespace": "kai-scheduler"}}
        creating = [{"state": {"waiting": {"reason": "ContainerCreating"}}}]
        status = {"startTime": self.began, "containerStatuses": creating}
        pod |= {"spec": {"volumes": volumes}, "status": status}
        return [pod] if path.endswith("/pods") else super().list(path, **query)

    def find(self, path):
        assert path == "/api/v1/namespaces/kai-scheduler/configmaps/scheduler-config"


def test_what_pods_mount_and_is_gone_is_not_waited_for(monkeypatch):
    for name, value in {"DEPLOYMENTS": "scheduler", "VERSION": "v0.9.3", "TIMEOUT": "600"}.items():
        monkeypatch.setenv(f"KAI_{name}", value)
    monkeypatch.setattr(wait, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(kai, "cluster", lambda: Unmounted("scheduler"))
    with pytest.raises(wait.NotReadyError) as ended:
        kai.wait()
    assert str(ended.value) == (
        "ConfigMap scheduler-config of namespace kai-scheduler is gone. Uninstall what mounts it,"
        " and run the update again"
    )
    monkeypatch.setattr(Unmounted, "began", f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    monkeypatch.setenv("KAI_TIMEOUT", "0.1")
    with pytest.raises(wait.NotReadyError, match=r"KAI v0\.9\.3 is not ready after 0 s"):
        kai.wait()


def owned(manager, fields):
    return {"manager": manager, "fieldsV1": {"f:spec": fields}}


def item(*entries):
    return {"metadata": {"name": "default", "uid": "u", "managedFields": list(entries)}}


def test_only_the_fields_that_were_applied_here_are_taken_away():
    usage = {".": {}, "f:clientType": {}, "f:usageParams": {".": {}, "f:windowSize": {}}}
    ours = owned(MANAGER, {"f:kValue": {}, "f:usageDBConfig": usage})
    others = owned("helm", {"f:placementStrategy": {".": {}, "f:gpu": {}}})
    assert _without_ours(item(others, ours))["spec"] == {"kValue": None, "usageDBConfig": None}


def test_of_a_mapping_of_somebody_else_only_our_part_goes():
    ours = owned(MANAGER, {".": {}, "f:placementStrategy": {"f:cpu": {}}})
    assert _without_ours(item(ours))["spec"] == {"placementStrategy": {"cpu": None}}


def test_the_mark_goes_and_another_object_of_that_name_is_left_alone():
    patch = _without_ours(item())
    assert patch == {"metadata": {"uid": "u", "labels": {"kai-fleet/shard": None}}}


def test_a_wait_is_over_in_its_time_however_many_questions_are_answered_late(monkeypatch, capsys):
    """Each pod of a tenant's API server mounts what is asked for, and each answer takes a while."""
    monkeypatch.setattr(wait, "_ROUND_SECONDS", 0.5)
    monkeypatch.setattr(wait, "_FIRST_SECONDS", 0.1)
    sources = [{"configMap": {"name": f"c{n}"}} for n in range(500)]
    state = {"waiting": {"reason": "ContainerCreating"}}
    status = {"startTime": "2026-01-01T00:00:00Z", "containerStatuses": [{"state": state}]}
    pod = {"metadata": {"name": "a", "namespace": "x"}, "spec": {"volumes": sources}}
    with canned_api.serving() as (api, url):
        api.otherwise, api.delay = (200, {"metadata": {}}), 0.1
        api.answers["/pods"] = (200, {"items": [{**pod, "status": status}] * 50})
        asked = kai.Api.of_kubeconfig(canned_api.kubeconfig(url))
        keys = kai.Keys("", "", "")
        begun = time.monotonic()
        with pytest.raises(wait.NotReadyError, match="is not ready after 1 s"):
            wait.until_ready(
                asked,
                "KAI",
                lambda: ["a part"] * len(asked.list("/pods")),
                1.0,
                "kubectl get pods",
                lambda: kai.reasons(asked, map(kai.KubeObject, asked.list("/pods")), keys),
            )
    assert time.monotonic() - begun < 10


class Inside:
    """A host with vCluster ml, and what the API of that answers."""

    def __init__(self, uid, port=31000, plane=True):
        self.uid, self.port, self.plane = uid, port, plane

    def get(self, api, path):
        if path.endswith("/secrets/vc-ml"):
            return {"data": vcluster_secrets.data()}
        assert (api.host, path) == ("https://1.2.3.4:31000", "/api/v1/namespaces/kube-system")
        if isinstance(self.uid, Exception):
            raise self.uid
        return {"metadata": {"uid": self.uid}}

    def find(self, api, path):
        assert api.host == HOST
        if path.endswith("/services/ml"):
            return {"spec": {"ports": [{"port": 443, "nodePort": self.port}]}}
        return {"spec": {}} if self.plane and path.endswith("/statefulsets/ml") else None


AWAY = UnreachableError("nobody answers")


@pytest.mark.parametrize(
    ("made_in", "inside", "says"),
    [
        ("0d9f", Inside("0d9f"), ""),
        (None, Inside("0d9f"), ""),  # as an earlier version declared it
        ("0d9f", Inside("77aa"), "vCluster ml is another one now: nothing is left"),
        ("0d9f", Inside(AWAY, port=32000), "vCluster ml does not answer where it was: nothing is"),
        (None, Inside(AWAY), "vCluster ml does not answer where it was: nothing is left"),
        ("0d9f", Inside("0d9f", plane=False), "vCluster ml is gone: nothing is left"),
    ],
)
def test_what_was_in_another_vcluster_is_dropped(monkeypatch, capsys, made_in, inside, says):
    _of_ml(monkeypatch, made_in, inside)
    assert (wait.client_for_removal() is None) == bool(says)
    assert says in capsys.readouterr().err


def test_of_a_vcluster_that_does_not_answer_now_nothing_is_dropped(monkeypatch):
    """A clean-up that was not done would leave webhooks without a server."""
    _of_ml(monkeypatch, "0d9f", Inside(AWAY))
    with pytest.raises(UnreachableError):
        wait.client_for_removal()


def test_an_answer_without_a_uid_is_none_of_another_vcluster(monkeypatch):
    """Its tenant's API server gives it."""
    _of_ml(monkeypatch, "0d9f", Inside(""))
    with pytest.raises(wait.NotReadyError, match="namespace kube-system of vCluster ml has no UID"):
        wait.client_for_removal()


@pytest.mark.parametrize("probe", ["kai clean-up", "shards remove"])
def test_every_removal_ends_well_in_another_vcluster(monkeypatch, probe):
    _of_ml(monkeypatch, "0d9f", Inside("77aa"))
    monkeypatch.setenv("KAI_CONFIG", "remove")
    fleet_probe.PROBES[probe]()


def _of_ml(monkeypatch, made_in, inside):
    monkeypatch.setattr(wait.Api, "get", lambda api, path: inside.get(api, path))
    monkeypatch.setattr(wait.Api, "find", lambda api, path: inside.find(api, path))
    monkeypatch.setenv("PROBE_KUBECONFIG", canned_api.kubeconfig(HOST))
    monkeypatch.setenv("PROBE_SECRET", "team-ml/vc-ml")
    monkeypatch.setenv("PROBE_SERVER", "https://1.2.3.4:31000")
    if made_in:
        monkeypatch.setenv("PROBE_CLUSTER", made_in)
