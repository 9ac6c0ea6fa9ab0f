"""Helm's record of a vCluster's release: what the chart makes passes, and nothing else does."""

import base64
import gzip
import json

import pytest

from kai_fleet.kube.errors import UnreachableError
from kai_fleet.probes import __main__ as fleet_probe
from kai_fleet.probes import former
from kai_fleet.releases import helm_record

MANIFEST = """---
# Source: vcluster/templates/serviceaccount.yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: vc-ml
  namespace: team-ml
---
# Source: vcluster/templates/clusterrole.yaml
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata:
  name: vc-ml-v-team-ml
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ml, namespace: team-ml}
spec: {template: {spec: {containers: [{name: syncer, command: ["a: b", '--- c']}]}}}
---
apiVersion: v1
kind: Service
metadata:
  name: ml-headless
"""


def packed(text):
    return base64.b64encode(base64.b64encode(text)).decode()


def secret(content=None, name="sh.helm.release.v1.ml.v1", raw=None, **more):
    record = {
        "name": "ml",
        "namespace": "team-ml",
        "version": 1,
        "manifest": MANIFEST,
        "info": {"status": "deployed"},
        "chart": {"metadata": {"name": "vcluster", "version": "0.36.1"}},
    }
    text = json.dumps(record | more).encode() if content is None else content
    return {"metadata": {"name": name}, "data": {"release": raw or packed(gzip.compress(text))}}


def forged(*secrets):
    return [it.why for it in helm_record.forged(secrets, "ml", "team-ml")]


def test_what_the_chart_makes_passes():
    assert forged(secret(), secret(name="sh.helm.release.v1.ml.v2", hooks=[])) == []
    assert forged(secret(hooks=None)) == []


def test_one_that_is_not_packed_passes_as_with_helm():
    plain = json.dumps({"name": "ml", "namespace": "team-ml", "manifest": MANIFEST}).encode()
    assert forged(secret(raw=packed(plain))) == []


def binding(name="x", **metadata):
    return json.dumps(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name, **metadata},
        }
    )


HOOK = {"name": "steal", "kind": "Job", "events": ["pre-delete"], "manifest": binding()}
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: ml"


def with_keys(**more):
    return secret(json.dumps({"name": "ml", "namespace": "team-ml", **more}).encode())


REFUSED = {
    "a hook": (secret(hooks=[HOOK]), "has a hook, Job steal"),
    "hooks that Go reads in another spelling": (with_keys(Hooks=[HOOK]), "has the key Hooks"),
    # The last letter is a long s, which Go takes for an s.
    "hooks with another s": (with_keys(**{"hook\u017f": [HOOK]}), "has the key 'hook\\u017f'"),
    "hooks twice": (
        secret(b'{"name": "ml", "namespace": "team-ml", "hooks": [1], "hooks": []}'),
        "has a key twice",
    ),
    "a cluster role binding": (secret(manifest=binding()), "names ClusterRoleBinding x"),
    "another team's guard": (
        secret(
            manifest="apiVersion: admissionregistration.k8s.io/v1\n"
            "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: kai-fleet-host-nlp}"
        ),
        "names ValidatingAdmissionPolicyBinding kai-fleet-host-nlp",
    ),
    "another namespace": (
        secret(manifest=f"{SERVICE}, namespace: kube-system}}"),
        "names Service ml of namespace kube-system",
    ),
    "what the platform makes there": (
        secret(
            manifest="apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n"
            "metadata: {name: kai-fleet-vcluster}"
        ),
        "names RoleBinding kai-fleet-vcluster",
    ),
    "its quota": (
        secret(manifest="apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpus}"),
        "names ResourceQuota gpus",
    ),
    "the namespace": (
        secret(manifest="apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}"),
        "names Namespace ml",
    ),
    "a list": (
        secret(manifest=f'{{"apiVersion": "v1", "kind": "List", "items": [{binding()}]}}'),
        "has a manifest with the key items",
    ),
    # Kubernetes takes it for a list, whatever its kind; Helm 3.22 deletes what is in it.
    "a list of another kind": (
        secret(manifest=f"{SERVICE}}}\nitems: [{binding('cluster-admin')}]"),
        "has a manifest with the key items",
    ),
    "a kind twice": (
        secret(manifest=f"{SERVICE}}}\nkind: Namespace"),
        "has a manifest with the key kind twice",
    ),
    "a separator with something behind it": (
        secret(manifest=f"kind: Service\n---{SERVICE}}}"),
        "has a manifest with '---a'",
    ),
    "an alias": (
        secret(manifest="a: &k Service\napiVersion: v1\nkind: *k\nmetadata: {name: ml}"),
        "has a manifest with aliases",
    ),
    "a type": (
        secret(manifest="apiVersion: v1\n!!binary a2luZA==: Namespace\nmetadata: {name: ml}"),
        "has a manifest with something that is no object",
    ),
    "a line end of one reader": (
        secret(manifest=f"{SERVICE}}} #\u2028kind: Namespace"),
        "has a manifest with '\\u2028'",
    ),
    "no name": (
        secret(manifest="apiVersion: v1\nkind: Service\nmetadata: {generateName: ml-}"),
        "has a manifest with something that is no object",
    ),
    "another release": (
        secret(name="sh.helm.release.v1.ml.v3", namespace="kube-system"),
        "is of another release, kube-system/ml",
    ),
    "no YAML": (secret(manifest="a: [b"), "has a manifest that is no YAML"),
    "no JSON": (secret(b"\xff"), "cannot be read: it is no JSON"),
    "no release": (secret(b"[]"), "cannot be read: it is no release"),
    "no base64": (secret(raw="?"), "cannot be read: it is no base64"),
    "a bomb": (secret(b" " * (20 << 20)), "is larger than 8 MiB"),
    "a deep one": (secret(b"[" * 200_000), "cannot be read: it is no JSON"),
    "deep YAML": (secret(manifest="[" * 900), "has a manifest of more than 64 levels"),
    "two in one": (
        secret(raw=packed(gzip.compress(b"{}") + gzip.compress(b"{}"))),
        "cannot be read: it is not packed as Helm packs",
    ),
    "cut": (
        secret(raw=packed(gzip.compress(b"{}" * 999)[:-9])),
        "cannot be read: it is not packed as Helm packs",
    ),
    "a terminal's escapes": (
        secret(manifest='apiVersion: v1\nkind: "\\e[2J"\nmetadata: {name: ml}'),
        "names '\\x1b[2J' ml",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_whatever_else_is_refused_with_why(case):
    record, why = REFUSED[case]
    (found,) = forged(record)
    assert found == why


def test_every_record_is_looked_at_whatever_its_name_and_revision():
    odd = secret(name="innocent", hooks=[HOOK], version=99)
    found = helm_record.forged([secret(), odd], "ml", "team-ml")
    assert [it.secret for it in found] == ["innocent"]


class Cluster:
    def __init__(self, *answer):
        self.answer = answer

    def list(self, path, **query):
        assert path == "/api/v1/namespaces/team-ml/secrets"
        assert query == {"labelSelector": "owner=helm,name=ml"}
        if isinstance(self.answer[0], Exception):
            raise self.answer[0]
        return list(self.answer)


def run(monkeypatch, *answer):
    monkeypatch.setenv("RECORD_RELEASE", "team-ml/ml")
    monkeypatch.setattr(former, "cluster", lambda: Cluster(*answer))
    monkeypatch.setattr("sys.argv", ["fleet-probe", "record"])
    fleet_probe.main()


def test_the_probe_stops_before_helm_and_names_the_command(monkeypatch, capsys):
    run(monkeypatch, secret())
    with pytest.raises(SystemExit):
        run(monkeypatch, secret(), secret(name="sh.helm.release.v1.ml.v9", hooks=[HOOK]))
    said = capsys.readouterr().err
    assert "Secret sh.helm.release.v1.ml.v9 has a hook, Job steal" in said
    assert "kubectl -n team-ml delete secret sh.helm.release.v1.ml.v9" in said


def test_where_it_cannot_be_read_the_release_is_helms_affair(monkeypatch, capsys):
    run(monkeypatch, UnreachableError("no answer"))
    assert "is not looked at" in capsys.readouterr().err
