"""A vCluster's certificate that runs out: what the doctor says of it is done, and it is gone."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from kubernetes import client

from sandbox.control_plane.certificates import Authority
from sandbox.vcluster import vcluster
from tests.engine.doctor_repairs import OF_CERTIFICATES, Repair, eventually
from tests.engine.one_team import OneTeam

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(900)]

RENEWS = "v0.31.3"


@pytest.fixture(scope="module")
def one_team(sandbox, tmp_path_factory):
    """One of its own, whose vCluster is the last that renews no certificate."""
    folder = tmp_path_factory.mktemp("certificates") / "project"
    return OneTeam.make(sandbox, folder, vcluster="v0.30.5")


@pytest.fixture
def repair(product, one_team):
    return Repair(one_team)


@pytest.fixture
def soon_over(one_team, product, monkeypatch):
    """Have the certificate of the team's kubeconfig end in a week, as if a year had gone by."""
    issue = trustme.CA.issue_cert
    authority = Authority(vcluster.folder(one_team.sandbox.directory, "team-ml", "ml") / "certs")
    ends = datetime.now(UTC) + timedelta(days=7)
    with monkeypatch.context() as patch:
        patch.setattr(
            trustme.CA, "issue_cert", lambda *it, **more: issue(*it, **more, not_after=ends)
        )
        authority.path("admin").certificate.unlink()
        authority.client("admin", "kubernetes-admin", "system:masters")
    # As its vCluster wrote it a year ago.
    pair = authority.path("admin")
    data = {
        "config": authority.kubeconfig("admin", "https://localhost:8443", "team-ml-ml").encode(),
        "client-certificate": pair.certificate.read_bytes(),
        "client-key": pair.key.read_bytes(),
    }
    body = {"data": {key: base64.b64encode(value).decode() for key, value in data.items()}}
    client.CoreV1Api(one_team.host()).patch_namespaced_secret("vc-ml", "team-ml", body)


def test_a_certificate_that_the_vcluster_does_not_renew(soon_over, product, repair):
    """First in this file: versions of vClusters go up only."""

    def up(config):
        config["kai-fleet:teams"]["ml"]["vcluster"] = {"version": RENEWS}

    of = "vCluster ml its certificate expires"
    (finding,) = eventually(lambda: repair.found("vcluster", of))
    assert f"write {RENEWS} at kai-fleet:teams.ml.vcluster.version" in finding.fix
    product.edit(up)
    repair("vcluster", of)


def test_a_certificate_that_runs_out(soon_over, repair):
    repair("vcluster", "vCluster ml its certificate expires on")
    assert repair.ran >= OF_CERTIFICATES
