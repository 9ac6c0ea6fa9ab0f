"""Larger volumes for the store of a vCluster: its claims grow, its StatefulSet is made anew."""

import pytest

from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError
from kai_fleet.cluster.probes import vcluster
from kai_fleet.cluster.probes.wait import NotReadyError

CLAIMS = "/api/v1/namespaces/team-ml/persistentvolumeclaims"
SETS = "/apis/apps/v1/namespaces/team-ml/statefulsets"
FIXED = RefusedError(
    403, "Forbidden", b'{"message": "only dynamically provisioned pvc can be resized"}'
)


def claim(size, name="data"):
    requests = {"requests": {"storage": size}}
    return {"metadata": {"name": name}, "spec": {"resources": requests}}


def stateful_set(size, *more):
    return {"spec": {"volumeClaimTemplates": [*more, claim(size)]}}


class Host:
    """A host with claims and a StatefulSet by path; `patched` are the sizes by claim."""

    def __init__(self, objects, refuses=None, keeps=False):
        self.objects = dict(objects)
        self.refuses = refuses or {}
        self.keeps = keeps  # its garbage collector does not run
        self.patched = {}
        self.deleted = []

    def restart_limits(self, seconds):
        """Each round of questions has its time."""

    def find(self, path):
        return self.objects.get(path)

    def patch(self, path, body):
        name = path.removeprefix(f"{CLAIMS}/")
        if name in self.refuses:
            raise self.refuses[name]
        assert not self.deleted, "a claim that is refused has to leave the StatefulSet"
        self.patched[name] = body["spec"]["resources"]["requests"]["storage"]

    def delete(self, path, **query):
        assert query == {"propagationPolicy": "Orphan"}, "its pods have to stay"
        self.deleted.append(path.removeprefix(f"{SETS}/"))
        if not self.keeps:
            del self.objects[path]


@pytest.fixture
def grow(monkeypatch):
    def run(host, claims="data-ml-0", size="20Gi"):
        names = {"NAMESPACE": "team-ml", "VCLUSTER": "ml", "CLAIMS": claims, "SIZE": size}
        for key, value in names.items():
            monkeypatch.setenv(f"PODS_{key}", value)
        monkeypatch.setattr(vcluster, "cluster", lambda: host)
        vcluster.grow()
        return host

    return run


def runs(size="5Gi", template="5Gi", **more):
    return Host({f"{CLAIMS}/data-ml-0": claim(size), f"{SETS}/ml": stateful_set(template)}, **more)


def test_a_claim_grows_and_its_stateful_set_is_made_anew_around_its_pods(grow):
    host = grow(runs())
    assert host.patched == {"data-ml-0": "20Gi"}
    assert host.deleted == ["ml"]


def test_each_member_of_an_etcd_gets_a_larger_volume(grow):
    names = [f"data-ml-etcd-{number}" for number in range(3)]
    objects = {f"{CLAIMS}/{name}": claim("5Gi") for name in names}
    host = grow(
        Host({**objects, f"{SETS}/ml-etcd": stateful_set("5Gi"), f"{SETS}/ml": {}}),
        claims=",".join(names),
    )
    assert host.patched == dict.fromkeys(names, "20Gi")
    assert host.deleted == ["ml-etcd"]


def test_what_was_grown_by_hand_gets_its_stateful_set_and_never_shrinks(grow):
    host = grow(runs(size="40Gi"))
    assert host.patched == {}
    assert host.deleted == ["ml"]


@pytest.mark.parametrize("size", ["5Gi", "5120Mi", "4Gi"])
def test_a_volume_that_is_as_large_stays_with_all_that_has_it(grow, size):
    host = grow(runs(), size=size)
    assert (host.patched, host.deleted) == ({}, [])


def test_a_new_vcluster_has_nothing_to_grow_yet(grow):
    host = grow(Host({}))
    assert (host.patched, host.deleted) == ({}, [])


def test_an_interrupted_run_goes_on(grow):
    """Its StatefulSet was deleted, and the release did not make it again."""
    host = grow(Host({f"{CLAIMS}/data-ml-0": claim("20Gi")}))
    assert (host.patched, host.deleted) == ({}, [])


def test_a_template_of_another_volume_stays_as_it_is(grow):
    host = Host({f"{SETS}/ml": stateful_set("20Gi", claim("1Gi", "logs"))})
    assert grow(host).deleted == []


def test_a_class_that_lets_no_volume_grow_is_told_and_nothing_else_changes(grow):
    host = runs(refuses={"data-ml-0": FIXED})
    with pytest.raises(NotReadyError) as refused:
        grow(host)
    message = str(refused.value)
    assert "the store of vCluster ml does not grow to 20Gi: the API answers 403" in message
    assert "only dynamically provisioned pvc can be resized" in message
    assert "Write the size before at vcluster.size, or have" in message
    assert host.deleted == []


def test_a_host_that_does_not_answer_is_no_refusal_of_the_class(grow):
    host = runs(refuses={"data-ml-0": UnreachableError("timed out")})
    with pytest.raises(UnreachableError):
        grow(host)
    assert host.deleted == []


def test_a_stateful_set_that_does_not_go_is_told(grow, monkeypatch):
    monkeypatch.setattr(vcluster, "_ORPHANED_SECONDS", 0.1)
    with pytest.raises(NotReadyError, match=r"Missing: the garbage collector. Look with: kubectl"):
        grow(runs(keeps=True))
