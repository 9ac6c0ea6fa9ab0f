"""`fleet team renew` against a host in memory: what is written, in which order, what is refused."""

import base64

import pytest
import trustme

from kai_fleet.cluster.kube.errors import AbsentError, RefusedError
from kai_fleet.cluster.probes import wait
from kai_fleet.cluster.tenant_kubeconfig import kubeconfig_of_secret
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.teams import renewal
from tests.unit.components.cluster import vcluster_secrets

OLD = kubeconfig_of_secret(vcluster_secrets.data(), "https://10.0.0.1:443", "team-ml-ml")
PLANE = "/apis/apps/v1/namespaces/team-ml/statefulsets/ml"
CERTS = "/api/v1/namespaces/team-ml/secrets/ml-certs"
ACCESS = "/api/v1/namespaces/team-ml/secrets/vc-ml"


class Host:
    """Objects by path. A patch is noted; the one of the template has vCluster start anew."""

    def __init__(self):
        old = base64.b64encode(vcluster_secrets.keys().authority).decode()
        names = [f"{name}.{part}" for name in ("ca", "client-ca") for part in ("crt", "key")]
        self.patched = []
        self.objects = {
            PLANE: plane("0.36.1"),
            CERTS: {"metadata": {"resourceVersion": "7"}, "data": dict.fromkeys(names, old)},
            ACCESS: {"data": vcluster_secrets.data()},
        }
        self.starts = True

    def find(self, path):
        return self.objects.get(path)

    def get(self, path):
        if not self.objects.get(path):
            raise AbsentError(404, f"{path} is not there")
        return self.objects[path]

    def patch(self, path, body):
        self.patched.append((path, body))
        if path == CERTS:
            merged = self.objects[CERTS]["data"] | body["data"]
            self.objects[CERTS]["metadata"] = {"resourceVersion": "8"} | body["metadata"]
            self.objects[CERTS]["data"] = {key: item for key, item in merged.items() if item}
        elif self.starts:
            data = self.objects[CERTS]["data"]
            self.objects[ACCESS] = {"data": vcluster_secrets.data(of=issued_by(data))}

    def restart_limits(self, seconds):
        pass

    def close(self):
        pass


def issued_by(data):
    """An administrator's certificate of the authority in a Secret."""
    files = [base64.b64decode(data[f"ca.{part}"]) for part in ("crt", "key")]
    leaf = trustme.CA.from_pem(*files).issue_cert("admin", common_name="admin")
    pem = leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes()
    return vcluster_secrets.Keys(files[0], *pem)


def plane(version):
    ready = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    labels = {"chart": f"vcluster-{version}"}
    return {"metadata": {"labels": labels}, "spec": {"replicas": 1}, "status": ready}


@pytest.fixture
def host(monkeypatch):
    host = Host()
    monkeypatch.setattr(renewal, "host_of_stack", lambda _: host)
    monkeypatch.setattr(wait, "_POLL_SECONDS", 0.0)
    until_ready = wait.until_ready

    def at_once(api, what, missing, seconds, look):
        assert seconds == 600
        until_ready(api, what, missing, 0.0, look)

    monkeypatch.setattr(wait, "until_ready", at_once)
    return host


def test_the_authority_is_replaced_in_one_write_and_then_it_restarts(host):
    renewal.renew("lab", "ml", OLD)
    (certs, body), (restarted, template) = host.patched
    assert (certs, restarted) == (CERTS, PLANE)
    marks = template["spec"]["template"]["metadata"]["annotations"]
    assert body["metadata"] == {"resourceVersion": "7", "annotations": marks}
    assert list(marks) == ["vcluster.loft.sh/cert-rotation-at"]
    data = body["data"]
    new = base64.b64decode(data["client-ca.crt"])
    assert new != vcluster_secrets.keys().authority
    assert data["ca.crt"] == data["client-ca.crt"]
    assert data["apiserver-kubelet-client.crt"] is None
    assert set(data) == {*data} - {"server-ca.crt", "server-ca.key", "sa.key"}


def test_a_run_that_was_cut_off_makes_no_second_authority(host):
    host.starts = False
    with pytest.raises(UserError):
        renewal.renew("lab", "ml", OLD)
    host.patched.clear()
    host.starts = True
    renewal.renew("lab", "ml", OLD)
    assert [path for path, _ in host.patched] == [PLANE]


def test_a_control_plane_that_keeps_the_old_authority_is_told(host):
    host.starts = False
    says = "Missing: statefulset ml, which restarts with the new authority. Look with: kubectl"
    with pytest.raises(UserError, match=says):
        renewal.renew("lab", "ml", OLD)


@pytest.mark.parametrize(
    ("path", "found", "says"),
    [
        (PLANE, None, "vCluster ml on the host of stack lab: 404"),
        (PLANE, plane("0.32.3"), r"v0\.32\.3 has one authority .* to v0\.33\.4 or newer"),
        (CERTS, {"metadata": {}, "data": None}, "vCluster ml on the host of stack lab: "),
        (CERTS, None, "404 .*ml-certs is not there"),
    ],
)
def test_what_cannot_be_renewed_is_refused_and_nothing_is_written(host, path, found, says):
    host.objects[path] = found
    with pytest.raises(UserError, match=says):
        renewal.renew("lab", "ml", OLD)
    assert host.patched == []


def test_a_host_that_refuses_is_one_sentence(host, monkeypatch):
    def refuse(*_):
        raise RefusedError(403, "Forbidden")

    monkeypatch.setattr(host, "patch", refuse)
    with pytest.raises(UserError, match="vCluster ml on the host of stack lab: 403 Forbidden"):
        renewal.renew("lab", "ml", OLD)


@pytest.fixture
def lab(project, monkeypatch):
    """Its stack has team ml; `asked` has what was renewed."""
    project.outputs = {"teams": {"ml": {"scheduler": "v0.14.7"}}, "kubeconfigs": {"ml": OLD}}
    project.asked = []
    monkeypatch.setattr(renewal, "renew", lambda *arguments: project.asked.append(arguments))
    return project


def test_without_a_terminal_it_wants_yes_and_with_it_says_who_fetches_what(lab):
    ran = lab.run("team", "renew", "ml", "-s", "lab")
    assert ran.refusal.endswith("write --yes: .venv/bin/fleet team renew ml --stack lab --yes")
    assert lab.asked == []
    ran = lab.run("team", "renew", "ml", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert lab.asked == [("lab", "ml", OLD)]
    assert lab.engine.asked == ["up lab"]
    assert "fleet team kubeconfig ml --stack lab --output ml.kubeconfig" in ran.out


def test_a_team_that_was_never_made_has_nothing_to_renew(lab):
    ran = lab.run("team", "renew", "dev", "-s", "lab", "--yes")
    assert "team dev is in Pulumi.lab.yaml, but was never made" in ran.refusal
