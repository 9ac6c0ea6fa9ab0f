"""A tenant writes the kubeconfig of its vCluster: whoever reads it on the operator's machine runs
nothing of it, says whose it is, and how it is put right.

By the token of the vCluster's own account, as its chart grants it, on a real API server.
"""

import base64
import shlex

import pytest
import yaml
from kubernetes import client

from tests.attacks.http import Http
from tests.engine.doctor_repairs import OF_KUBECONFIGS, Repair, eventually
from tests.engine.product import api

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

SECRET = "/api/v1/namespaces/team-ml/secrets/vc-ml"
SAID = "has in its key config what vCluster does not write there"
BY = "Somebody who can write in the namespace of team ml wrote it"
DELETE = "-n team-ml delete secret vc-ml"
RESTART = "-n team-ml rollout restart statefulset ml"
PROBE = (
    "PROBE_KUBECONFIG=\"$(cat '{host}')\" PROBE_SECRET=team-ml/vc-ml PROBE_SERVER=https://x:1"
    " PROBE_PLACE=kai-fleet:teams.ml"
    " KAI_VERSION=v0.9.3 KAI_TIMEOUT=5 .venv/bin/fleet-probe kai wait"
)
OF_VCLUSTER = (
    "PROBE_KUBECONFIG=\"$(cat '{host}')\" VCLUSTER_NAME=ml VCLUSTER_NAMESPACE=team-ml"
    " PROBE_PLACE=kai-fleet:teams.ml"
    " VCLUSTER_ACCESS={access} VCLUSTER_HOST=127.0.0.1 VCLUSTER_TIMEOUT=60"
    " .venv/bin/fleet-probe vcluster wait"
)
READERS = {
    "doctor": ".venv/bin/fleet doctor --stack sandbox",
    "report": ".venv/bin/fleet report --stack sandbox --html report.html",
    "preview": ".venv/bin/fleet preview --stack sandbox",
    "up": ".venv/bin/fleet up --stack sandbox",
    "a probe inside": PROBE,
    "the probe of the vCluster": OF_VCLUSTER,
}


@pytest.fixture(scope="module")
def repair(product, one_team):
    return Repair(one_team)


@pytest.fixture(scope="module")
def tenant(one_team):
    """The account of the team's vCluster."""
    host = api(one_team.sandbox.kubeconfig.read_text())
    asked = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)
    )
    given = client.CoreV1Api(host).create_namespaced_service_account_token(
        "vc-ml", "team-ml", asked
    )
    own = client.Configuration()
    own.host, own.ssl_ca_cert = host.configuration.host, host.configuration.ssl_ca_cert
    own.api_key = {"authorization": f"Bearer {given.status.token}"}
    return Http(client.ApiClient(own))


@pytest.fixture(scope="module")
def marker(repair, tenant, tmp_path_factory):
    """What the planted program would write, once it is planted; nobody else can change it then."""
    file = tmp_path_factory.mktemp("marker") / "run"
    there = tenant.get(SECRET)["data"]
    document = yaml.safe_load(base64.b64decode(there["config"]))
    (user,) = document["users"]
    user["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "interactiveMode": "Never",
            "command": "sh",
            "args": ["-c", f"env > {shlex.quote(str(file))}"],
        }
    }
    text = base64.b64encode(yaml.safe_dump(document).encode()).decode()
    tenant.ask("PATCH", SECRET, {"immutable": True, "data": {"config": text}})
    return file


def run(repair, one_team, reader):
    service = client.CoreV1Api(
        api(one_team.sandbox.kubeconfig.read_text())
    ).read_namespaced_service("ml", "team-ml")
    return repair.run(
        READERS[reader].format(host=one_team.sandbox.kubeconfig, access=service.spec.type)
    )


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_runs_nothing_of_it_and_says_whose_it_is(reader, repair, one_team, marker):
    done = run(repair, one_team, reader)
    reported = " ".join(f"{done.stdout} {done.stderr}".split())
    assert not marker.exists(), marker.read_text()
    # A preview warns: in the update this team alone fails.
    assert (done.returncode == 0) is (reader == "preview"), reported
    assert "Traceback" not in reported
    plain = "".join(reported.split())  # a table breaks words
    # The report's page has the doctor's finding, and with it the rest.
    for words in (SAID,) if reader == "report" else (SAID, BY, DELETE, RESTART):
        assert words.replace(" ", "") in plain, reported


def test_what_was_kept_from_before_still_serves_the_operator(repair, one_team, marker):
    """The state has what an update built anew, and nothing of what is in the Secret now."""
    done = repair.run(".venv/bin/fleet team kubeconfig ml --stack sandbox")
    assert done.returncode == 0
    assert "exec" not in done.stdout
    assert yaml.safe_load(done.stdout) == yaml.safe_load(one_team.kubeconfig.read_text())
    assert repair.run(".venv/bin/fleet teams --stack sandbox").returncode == 0
    assert not marker.exists()


def test_the_printed_commands_put_it_right(repair, one_team, tenant, marker):
    finding = repair("vcluster", "kubeconfig of vCluster ml")
    assert [command.partition(" -n ")[2] for command in finding.commands] == [
        "team-ml delete secret vc-ml",
        "team-ml rollout restart statefulset ml",
    ]
    assert repair.ran >= OF_KUBECONFIGS
    eventually(lambda: not repair.found("vcluster", "ml"))
    assert "immutable" not in tenant.get(SECRET)
    assert repair.run(READERS["preview"]).returncode == 0
    assert repair.run(READERS["report"]).returncode == 0
    assert not marker.exists()
