"""People enter a vCluster by accounts of an identity provider: flags, roles, a kubeconfig."""

import json

import pytest
import yaml

from kai_fleet.isolation.queue_guard import inside
from kai_fleet.releases import VCLUSTER
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_stack.arguments import team as team_arguments
from kai_fleet_stack.settings.loading import load
from tests.chart_keys import unknown_keys
from tests.unit.cli.teams.test_team_list import KEPT
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.stack.stack_arguments import arguments, team_stack, team_values, vcluster_stack

ISSUER = {"issuer": "https://id.example.com/realms/ml", "clientId": "kubernetes"}
GROUPS = {"ml-team-vision": "edit", "leads": "admin", "auditors": "view"}
AUTHORITY = vcluster_secrets.keys().authority.decode()
ENTERED = {"oidc": ISSUER, "groups": GROUPS}
FLAGS = [
    "--oidc-issuer-url=https://id.example.com/realms/ml",
    "--oidc-client-id=kubernetes",
    "--oidc-username-claim=sub",
    "--oidc-username-prefix=oidc:",
    "--oidc-groups-claim=groups",
    "--oidc-groups-prefix=oidc:",
]


def declared(own=None, **of_all):
    return arguments(vcluster_stack(own, **of_all)).vcluster("ml")


def values(own=None):
    return team_values(vcluster_stack(own))


def flags(of):
    return of["controlPlane"]["distro"]["k8s"]["apiServer"]["extraArgs"]


@pytest.mark.parametrize("version", sorted(VCLUSTER))
def test_every_versions_api_server_gets_the_flags_with_their_defaults(version):
    created = values({"oidc": ISSUER})
    assert flags(created) == FLAGS
    assert unknown_keys("vcluster", version, created) == []


def test_flags_and_volumes_of_the_users_values_stay():
    volume = {"name": "audit", "configMap": {"name": "audit"}}
    mount = {"name": "audit", "mountPath": "/etc/audit"}
    own = {
        "controlPlane": {
            "distro": {"k8s": {"apiServer": {"extraArgs": ["--audit-log-path=-"]}}},
            "statefulSet": {"persistence": {"addVolumes": [volume], "addVolumeMounts": [mount]}},
        }
    }
    created = values({"oidc": {**ISSUER, "ca": AUTHORITY}, "values": own})
    assert flags(created) == [
        *FLAGS,
        "--oidc-ca-file=/etc/kai-fleet/oidc/ca.crt",
        "--audit-log-path=-",
    ]
    persistence = created["controlPlane"]["statefulSet"]["persistence"]
    assert [item["name"] for item in persistence["addVolumes"]] == ["kai-fleet-oidc", "audit"]
    assert persistence["addVolumeMounts"][1] == mount


def test_the_plan_mounts_the_authority_by_its_content():
    plan = plan_settings(vcluster_stack({"oidc": {**ISSUER, "ca": AUTHORITY}}))
    assert plan.problems == ()
    created = {resource.name: resource.inputs for resource in plan.resources}
    name = created["ml-oidc"]["metadata"]["name"]
    assert created["ml-oidc"]["data"] == {"ca.crt": AUTHORITY}
    assert created["ml-oidc"]["metadata"]["namespace"] == "team-ml"
    (volume,) = created["ml-release"]["values"]["controlPlane"]["statefulSet"]["persistence"][
        "addVolumes"
    ]
    assert volume["configMap"] == {"name": name}
    other = vcluster_secrets.keys("other").authority.decode()
    again = plan_settings(vcluster_stack({"oidc": {**ISSUER, "ca": other}}))
    assert next(resource for resource in again.resources if resource.name == "ml-oidc").inputs[
        "metadata"
    ]["name"] != (name), "a file that changes in place is read by no API server"


def test_each_group_reads_all_and_changes_what_its_role_may_in_default():
    created = {
        resource.name: resource.inputs
        for resource in plan_settings(vcluster_stack({"oidc": ISSUER, "groups": GROUPS})).resources
    }
    assert [subject["name"] for subject in created["ml-view"]["subjects"]] == [
        "oidc:auditors",
        "oidc:leads",
        "oidc:ml-team-vision",
    ]
    assert created["ml-view"]["roleRef"]["name"] == "view"
    for role, group in (("edit", "oidc:ml-team-vision"), ("admin", "oidc:leads")):
        bound = created[f"ml-{role}"]
        assert bound["metadata"]["namespace"] == "default", "never kube-system's accounts"
        assert bound["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        }
        assert [subject["name"] for subject in bound["subjects"]] == [group]
    labels = created["ml-readers"]["metadata"]["labels"]
    assert labels == {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    seen = {kind for rule in created["ml-readers"]["rules"] for kind in rule["resources"]}
    assert seen == {"nodes", "queues", "podgroups"}, "what `kubectl fleet` reads besides view"


def test_one_provider_serves_all_teams_and_groups_add_up():
    team = declared({"groups": {"vision": "edit"}}, oidc=ISSUER, groups={"audit": "view"})
    assert team["oidc"]["issuer"] == ISSUER["issuer"]
    assert team["groups"] == {"audit": "view", "vision": "edit"}
    own = declared({"oidc": {**ISSUER, "clientId": "ml"}}, oidc=ISSUER)
    assert own["oidc"]["client_id"] == "ml"


def test_a_team_stack_has_its_platforms_provider_and_its_own_groups():
    platform = vcluster_stack(oidc=ISSUER, groups={"audit": "view"})
    loaded = team_stack(platform, vcluster={"groups": {"nlp": "edit"}})
    assert loaded.mistakes == ()
    found = team_arguments.vcluster(loaded.settings, "nlp")
    assert found["oidc"]["client_id"] == "kubernetes"
    assert found["groups"] == {"audit": "view", "nlp": "edit"}


def test_the_guard_inside_asks_nobody_for_a_name():
    """So that no name of a provider gets around it."""
    args = arguments(vcluster_stack(ENTERED)).team("ml")
    guards = inside("ml", ["train"], args["guard"])
    assert "userInfo" not in json.dumps(guards)


OF_ML = "kai-fleet:teams.ml.vcluster"


@pytest.mark.parametrize(
    ("wrong", "path", "says"),
    [
        ({"oidc": {**ISSUER, "issuer": "http://id.example.com"}}, "oidc.issuer", "its https://"),
        ({"oidc": {**ISSUER, "issuer": "https://a:b@id"}}, "oidc.issuer", "its https://"),
        ({"oidc": {"issuer": "https://id.example.com"}}, "oidc.clientId", "is missing; write"),
        ({"oidc": {**ISSUER, "ca": "/etc/ca.pem"}}, "oidc.ca", "write the PEM text"),
        ({"oidc": {**ISSUER, "caFile": "/x"}}, "oidc.caFile", "is an unknown key"),
        ({"groups": {"vision": "edit"}}, "oidc", "write oidc: {issuer: https://"),
        ({"oidc": ISSUER, "groups": {"x": "cluster-admin"}}, "groups.x", "write one of 'view', 'e"),
        ({"oidc": ISSUER, "groups": {"system:masters": "edit"}}, "groups.system:masters", "own"),
    ],
)  # fmt: skip
def test_what_no_api_server_takes_is_refused_at_its_key(wrong, path, says):
    (mistake,) = load(vcluster_stack(wrong)).mistakes
    assert mistake.path == f"{OF_ML}.{path}"
    assert says in mistake.message


def test_a_kubeconfig_for_people_has_a_login_and_no_certificate(project):
    lab = project
    lab.outputs = {"teams": {"ml": {}}, "kubeconfigs": {"ml": KEPT}}
    file = lab.root / "Pulumi.lab.yaml"
    oidc = {**ISSUER, "ca": AUTHORITY, "scopes": ["email", "groups"]}
    file.write_text(f"{lab.text()}  kai-fleet:vcluster: {json.dumps({'oidc': oidc})}\n")
    out = lab.root / "people.kubeconfig"
    ran = lab.run("team", "kubeconfig", "ml", "-s", "lab", "--oidc", "-o", str(out))
    assert ran.code == 0, ran.refusal
    document = yaml.safe_load(out.read_text())
    administrators = yaml.safe_load(KEPT)
    assert document["clusters"] == administrators["clusters"]
    assert document["contexts"] == administrators["contexts"]
    (user,) = document["users"]
    assert set(user["user"]) == {"exec"}
    login = user["user"]["exec"]
    assert (login["command"], login["args"][:2]) == ("kubectl", ["oidc-login", "get-token"])
    assert login["args"][2:6] == [
        "--oidc-issuer-url=https://id.example.com/realms/ml",
        "--oidc-client-id=kubernetes",
        "--oidc-extra-scope=email",
        "--oidc-extra-scope=groups",
    ]
    assert login["args"][6] == (
        f"--certificate-authority-data={vcluster_secrets.encoded(AUTHORITY)}"
    )
    assert "kubectl krew install oidc-login" in login["installHint"]
    assert administrators["users"][0]["user"]["client-key-data"] not in out.read_text()
