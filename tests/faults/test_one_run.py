"""An update is one run, in which what fails of a team fails alone, whatever state the stack is in.

From each state what is printed ends it in a few commands, and the engine refuses none.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from tests.attacks.http import Http
from tests.engine.sandbox_commands import until
from tests.faults.case import CONFIG, ML, Case, Ran, client_of
from tests.faults.desired import converge
from tests.faults.drifts import Hands, delete_namespace
from tests.temporary import temporary

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

QUEUES = "/apis/scheduling.run.ai/v2/queues"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
NO = "the test refuses it"
FILE = "workloads/ml.yaml"
FILE_OF_DEV = "workloads/dev.yaml"
# The second is in the first: it is declared after it.
LAB = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-lab", "namespace": "lab"}},
]
REFUSED_BY_THE_ENGINE = "not been registered yet|could not (find|load) provider|panic"


def team(name: str, version: str = "v0.16.8") -> dict[str, Any]:
    own = {"nodePool": {"kai-fleet/pool": name}}
    return {**yaml.safe_load(yaml.safe_dump(ML)), **own, "scheduler": _virtual(version)}


def _virtual(version: str) -> dict[str, str]:
    return {"mode": "virtual", "version": version}


@dataclass
class Rig:
    """Team `ml`, which fails, and `research`, which is changed each time."""

    case: Case
    rows: list[str] = field(default_factory=list)
    quota: int = 6

    def http(self, name: str = "") -> Http:
        return Http(client_of(self.case.inside(name) if name else self.case.host))

    def manifests(self, documents: list[Any], name: str = FILE) -> None:
        file = self.case.checkout / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump_all(documents))

    def ask(self, change: Callable[[Any], None] = lambda _: None) -> None:
        """Have another quota for research, and this."""
        self.quota = 11 - self.quota  # 5 or 6

        def both(config: Any) -> None:
            queues = config["kai-fleet:teams"]["research"]["queues"]
            queues["default"]["children"]["train"]["gpu"]["quota"] = self.quota
            change(config)

        self.case.edit(both)

    def fails_alone(self, *arguments: str, of: str = "ml") -> Ran:
        """An update in which this team alone fails, and research is as declared."""
        ran = self.case.start("up", *arguments).end(400)
        assert ran.code == 1, ran.reported
        assert "Traceback" not in ran.reported, ran.reported
        assert not re.search(REFUSED_BY_THE_ENGINE, ran.reported), ran.reported
        assert re.search(f"the update is done, but for team {of}$", ran.reported, re.M), (
            ran.reported
        )
        spec = self.http("research").get(f"{QUEUES}/train")["spec"]
        assert spec["resources"]["gpu"]["quota"] == self.quota, ran.reported
        return ran

    def heals(self, state: str, result: str, most: int = 3) -> None:
        """Follow what is printed to the end, and note how many commands that were."""
        reported = converge(self.case)
        joined = "\n".join(reported)
        assert not re.search(REFUSED_BY_THE_ENGINE, joined), joined
        assert len(reported) <= most, joined
        assert "Nothing changed" in self.case.up().reported
        self.rows.append(f"{state} | {result} | {len(reported)}")


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    case = Case.make(tmp_path_factory.mktemp("one-run"))
    with temporary(case.sandbox):
        case.sandbox_up()
        made = Rig(case)
        made.manifests(LAB)
        teams = {**CONFIG["kai-fleet:teams"], "ml": team("ml"), "research": team("research")}
        workloads = {"ml": [FILE]}
        case.write({**CONFIG, "kai-fleet:teams": teams, "kai-fleet:workloads": workloads})
        case.up()
        yield made
    print("\nstate | result | commands\n" + "\n".join(made.rows))


@contextmanager
def refusing(http: Http, resources: str, operation: str, probe: str, body: Any) -> Iterator[None]:
    """Have a cluster refuse an operation; `probe` is the path at which that shows."""
    group, _, plural = resources.rpartition("/")
    rule = {"apiGroups": [group], "apiVersions": ["*"], "resources": [plural]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{**rule, "operations": [operation]}]},
        "validations": [{"expression": "false", "message": NO}],
    }
    name, bound = {"metadata": {"name": "test-refuses"}}, {"validationActions": ["Deny"]}
    paths = [f"{ADMISSION}/validatingadmissionpolic{end}" for end in ("ies", "ybindings")]
    http.post(paths[0], name | {"spec": spec})
    http.post(paths[1], name | {"spec": {**bound, "policyName": "test-refuses"}})
    try:
        until(lambda: _is_refused(http, operation, probe, body))
        yield
    finally:
        for path in paths:
            http.ask("DELETE", f"{path}/test-refuses")
    until(lambda: not _is_refused(http, operation, probe, body))


def _is_refused(http: Http, operation: str, path: str, body: Any) -> bool:
    method = {"CREATE": "POST", "DELETE": "DELETE"}[operation]
    # KAI's webhook for queues judges no dry run.
    query = {} if path == QUEUES else {"dryRun": "All"}
    try:
        http.ask(method, path, body, **query)
    except ApiException as why:
        return NO in str(why.body)
    if not query:
        http.ask("DELETE", f"{path}/{body['metadata']['name']}")
    return False


NAMED: Any = {"metadata": {"name": "probe"}}
# A queue that the guard of a team's queues lets in.
NO_SHARE = {"quota": 0, "limit": 0, "overQuotaWeight": 0}
PROBE: Any = {
    **NAMED,
    "apiVersion": "scheduling.run.ai/v2",
    "kind": "Queue",
    "spec": {
        "parentQueue": "default",
        "resources": dict.fromkeys(("cpu", "gpu", "memory"), NO_SHARE),
    },
}
OF_HOST = "/api/v1/namespaces/team-ml"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/team-ml/networkpolicies"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-ml/roles"
# Where, what is refused, the folder of its objects, and one that could be.
PARTS = [
    ("", "/resourcequotas", f"{OF_HOST}/resourcequotas", {**NAMED, "spec": {}}),
    ("", "networking.k8s.io/networkpolicies", POLICIES, {**NAMED, "spec": {"podSelector": {}}}),
    ("ml", "/namespaces", "/api/v1/namespaces", NAMED),
    ("ml", "/configmaps", "/api/v1/namespaces/lab/configmaps", NAMED),
    ("ml", "scheduling.run.ai/queues", QUEUES, PROBE),
]


def _declared(rig: Rig, where: str, folder: str) -> list[str]:
    """The names of what the stack has there."""
    names = [item["metadata"]["name"] for item in rig.http(where).items(folder)]
    if folder == "/api/v1/namespaces":
        return ["lab"]
    if folder.endswith("lab/configmaps"):
        return ["of-lab"]
    if folder == QUEUES:
        return ["serve", "train"]
    return names


@pytest.mark.slow
@pytest.mark.parametrize(("where", "resources", "folder", "body"), PARTS, ids=lambda v: str(v)[:24])
def test_a_part_is_missing_and_its_cluster_refuses_it(rig, where, resources, folder, body):
    """Twice in a row; then it is there again."""
    http = rig.http(where)
    for name in _declared(rig, where, folder):
        http.ask("DELETE", f"{folder}/{name}")
    until(
        lambda: (
            not set(_declared(rig, where, folder))
            & {i["metadata"]["name"] for i in http.items(folder)}
            or folder != "/api/v1/namespaces"
        )
    )
    with refusing(http, resources, "CREATE", folder, body):
        rig.ask()
        rig.fails_alone("--refresh")
        rig.ask()
        rig.fails_alone()
    rig.heals(f"{resources.rpartition('/')[2]} missing, refused twice", "ml fails alone")


def test_a_deletion_that_is_refused_before_the_replacement(rig):
    """The engine would wait for ever. A team that is removed meanwhile is removed."""
    ml = rig.http("ml")
    helm = "/api/v1/namespaces/kai-scheduler/secrets"
    (record,) = [s for s in ml.items(helm) if s["type"] == "helm.sh/release.v1"]
    probe = f"{helm}/{record['metadata']['name']}"

    def change(config: Any) -> None:
        config["kai-fleet:teams"]["ml"]["scheduler"] = _virtual("v0.14.7")
        del config["kai-fleet:teams"]["dev"]

    with refusing(ml, "/secrets", "DELETE", probe, None):
        rig.ask(change)
        rig.fails_alone()
        assert not _there(rig.http(), "/api/v1/namespaces/team-dev"), "the other removal is done"
        rig.ask()
        rig.fails_alone()
    rig.heals(
        "KAI replaced, its deletion refused twice; dev removed", "ml fails alone, dev is gone"
    )


def test_what_the_old_kai_needs_stays_while_its_team_fails(rig):
    """The engine would delete its CRD, and then refuse its own state. The other removal is done."""
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpolicies.nvidia.com"

    def on(version: str, *, dev: bool = False, **vcluster: str) -> Callable[[Any], None]:
        def change(config: Any) -> None:
            teams = config["kai-fleet:teams"]
            teams["ml"] |= {"scheduler": _virtual(version), "vcluster": vcluster}
            teams.pop("dev", None)
            if dev:
                teams["dev"] = CONFIG["kai-fleet:teams"]["dev"]

        return change

    rig.case.edit(on("v0.9.3", dev=True))
    rig.case.up()
    assert _there(rig.http("ml"), crd)
    rig.ask(on("v0.16.8", size="9Gi"))  # the sandbox's class grows no volume
    rig.fails_alone()
    assert _there(rig.http("ml"), crd), "the KAI that stays needs it"
    assert not _there(rig.http(), "/api/v1/namespaces/team-dev"), "the other removal is done"
    rig.ask()
    rig.fails_alone()
    assert _there(rig.http("ml"), crd), "the KAI that stays needs it"
    rig.case.edit(on("v0.16.8"))
    rig.heals("KAI switched beside a volume that cannot grow; dev removed", "ml fails alone")
    assert not _there(rig.http("ml"), crd)


def _there(http: Http, path: str) -> bool:
    try:
        return "deletionTimestamp" not in http.get(path)["metadata"]
    except ApiException:
        return False


def test_the_namespace_is_deleted_by_hand(rig):
    delete_namespace(Hands.of(rig.case), "team-ml")
    rig.ask()
    rig.fails_alone()
    rig.heals("namespace deleted by hand", "ml fails alone")


def test_in_the_new_vcluster_something_fails_twice(rig):
    """What was to follow it is of the vCluster that is gone; then it is removed from the file."""
    delete_namespace(Hands.of(rig.case), "team-ml")
    broken = {**LAB[0], "metadata": {"name": "lab", "labels": {"a": "not valid!"}}}
    rig.manifests([broken, LAB[1]])
    rig.ask()
    rig.fails_alone("--refresh")
    rig.ask()
    rig.fails_alone("--refresh")
    rig.ask()
    rig.fails_alone()
    rig.manifests([LAB[0]])
    rig.heals(
        "new vCluster, a manifest refused three times, its dependent removed", "ml fails alone"
    )
    rig.manifests(LAB)
    rig.case.up()


@pytest.mark.slow
def test_a_new_team_that_fails(rig):
    """Then it is taken back."""
    broken = {**LAB[0], "metadata": {"name": "lab", "labels": {"a": "not valid!"}}}
    rig.manifests([broken], FILE_OF_DEV)

    def add(config: Any) -> None:
        config["kai-fleet:teams"]["dev"] = CONFIG["kai-fleet:teams"]["dev"]
        config["kai-fleet:workloads"]["dev"] = [FILE_OF_DEV]

    before = rig.case.file.read_text()
    rig.ask(add)
    rig.fails_alone(of="dev")
    rig.ask()
    rig.fails_alone(of="dev")
    rig.manifests([LAB[0]], FILE_OF_DEV)
    rig.heals("new team, a manifest refused twice", "the new team fails alone")
    rig.case.file.write_text(before)
    removed = rig.case.fleet("up", "--yes", "dev")
    assert removed.code == 0, removed.reported


@pytest.mark.slow
def test_a_team_is_removed_after_it_failed_in_a_new_vcluster(rig):
    delete_namespace(Hands.of(rig.case), "team-ml")
    rig.manifests([{**LAB[0], "metadata": {"name": "lab", "labels": {"a": "not valid!"}}}, LAB[1]])
    rig.ask()
    rig.fails_alone("--refresh")
    before = rig.case.file.read_text()

    def without(config: Any) -> None:
        del config["kai-fleet:teams"]["ml"]
        del config["kai-fleet:workloads"]

    rig.ask(without)
    rig.heals("removed after it failed in a new vCluster", "ml is gone", most=1)
    rig.manifests(LAB)
    rig.case.file.write_text(before)
    rig.heals("added again", "ml is there", most=1)
