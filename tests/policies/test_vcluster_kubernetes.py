"""vcluster-kubernetes: the guard inside a vCluster needs the API that it is made of."""

import pytest

from kai_fleet_policies.validation import validate

VIRTUAL = {"mode": "virtual", "version": "v0.16.8"}


def refused(scheduler=VIRTUAL, *, guard="deny", own=None, of_all=None):
    team = {"scheduler": scheduler, "nodePool": {"pool": "a"}, "vcluster": own or {}}
    raw = {
        "cluster": {"name": "p", "context": "p"},
        "guard": {"mode": guard},
        "teams": {"ml": team},
    }
    problems = validate({**raw, "vcluster": of_all or {}}).refused
    return {p.path: p.message for p in problems if p.check == "vcluster-kubernetes"}


@pytest.mark.parametrize("version", ["v1.29.9", "1.28.0", "v1.9.0"])
def test_a_kubernetes_without_the_guards_policies_is_refused(version):
    ((path, message),) = refused(own={"kubernetesVersion": version}).items()
    assert path == "kai-fleet:teams.ml.vcluster.kubernetesVersion"
    assert f"is {version}, and the guard inside needs Kubernetes 1.30 or newer" in message
    assert "write v1.36.0" in message and "kai-fleet:guard: {mode: off}" in message


@pytest.mark.parametrize("version", ["v1.30.0", "1.30.1", "v1.36.0"])
def test_one_with_them_passes(version):
    assert refused(own={"kubernetesVersion": version}) == {}


def test_it_is_told_where_it_is_written():
    assert list(refused(of_all={"kubernetesVersion": "v1.29.9"})) == [
        "kai-fleet:vcluster.kubernetesVersion"
    ]


def test_without_a_guard_inside_any_passes():
    old = {"kubernetesVersion": "v1.29.9"}
    assert refused(guard="off", own=old) == {}
    assert refused({"mode": "default"}, own=old) == {}


def test_the_advice_is_what_that_vcluster_brings():
    (message,) = refused(own={"kubernetesVersion": "v1.29.9", "version": "v0.30.5"}).values()
    assert "write v1.34.0" in message
