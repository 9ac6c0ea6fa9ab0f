"""What a run says of the teams that held it up: whose cluster refused, what there, the repair."""

import json
import re
import time
from types import SimpleNamespace

import pytest
import yaml
from pulumi import automation

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError
from kai_fleet.vcluster.kubeconfig import sentence_of_other_vcluster
from kai_fleet_cli import hosts
from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.deletions import Deletions
from kai_fleet_cli.engine.errors import EngineError
from kai_fleet_cli.engine.operation import Operation
from kai_fleet_cli.recovery import held_up, state
from kai_fleet_cli.recovery.failures import Run
from kai_fleet_cli.recovery.resume import Signals
from kai_fleet_cli.recovery.state import PendingOperation, State
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.cluster.canned_api import kubeconfig, serving

pytestmark = pytest.mark.texts("failures")

STACK = "urn:pulumi:prod::kai-fleet::"
ROOT = f"{STACK}pulumi:pulumi:Stack::kai-fleet-prod"
TEAM = f"{STACK}kai-fleet:index:Team"
ML, NLP = f"{TEAM}::ml", f"{TEAM}::nlp"
KAI = f"{TEAM}$kai-fleet:index:KaiScheduler::ml-kai"
RELEASE = f"{TEAM}$kai-fleet:index:KaiScheduler$kubernetes:helm.sh/v3:Release::ml-kai-release"
TREE = f"{TEAM}$kai-fleet:index:QueueTree::ml-queues"
QUEUES = f"{TEAM}$kai-fleet:index:QueueTree$kai-fleet:index:Queues::ml-queues"
SPACE = f"{STACK}kai-fleet:index:TeamNamespace$kubernetes:core/v1:Namespace::ml-namespace"
HOST = f"{STACK}pulumi:providers:kubernetes::host"
PROVIDER = f"{TEAM}$kai-fleet:index:VirtualCluster$pulumi:providers:kubernetes::ml"
VCLUSTER = f"{TEAM}$kai-fleet:index:VirtualCluster$kubernetes:helm.sh/v3:Release::ml-release"
WAIT = f"{TEAM}$kai-fleet:index:KaiScheduler$command:local:Command::ml-kai-ready"
PARENTS = {WAIT: KAI, RELEASE: KAI, KAI: ML, QUEUES: TREE, TREE: ML, ML: ROOT, NLP: ROOT}
AGAIN = ".venv/bin/fleet up --refresh --stack prod"
INSIDE = "kubectl --kubeconfig ml.kubeconfig "
DENIED = (
    "queues.scheduling.run.ai \"train\" is forbidden: ValidatingAdmissionPolicy 'no-queues' with"
    " binding 'all' denied request: no"
)


def explained(message, urn, *resources, url="http://127.0.0.1:1", host=None, refreshed=False):
    """The explanation for team ml, whose vCluster is at `url`, on a host at `host`."""
    stack, known = SimpleNamespace(name="prod", workspace=None), known_of(*resources)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "kubeconfig", lambda *_: kubeconfig(url))
        patch.setattr(hosts, "host_of_stack", lambda _: Api.of_kubeconfig(kubeconfig(host or url)))
        teams = {"ml": {urn: message}}
        run = Run("prod", AGAIN, refreshed=refreshed)
        return held_up.explain("done, but for", stack, run, teams, known.resources)


def known_of(*resources):
    return State({resource["urn"]: resource for resource in resources})


def line_of(message, urn=QUEUES, resources=(), **more):
    message = explained(message, urn, *resources, **more)
    lead, line = message.split("\n")
    assert lead == "done, but for team ml"
    assert line.endswith(", then run the same command again")
    return line.removesuffix(", then run the same command again")


REFUSED = {
    "policy": DENIED,
    "another vCluster": sentence_of_other_vcluster("ml", "prod"),
    "namespace gone": "exit status 1: Service ml is gone with namespace team-ml",
    "KAI not ready": "KAI v0.16.8 is not ready after 300 s. Missing: deployment binder",
    "ConfigMap gone": "ConfigMap scheduler-config of namespace kai-scheduler is gone. Uninstall",
    "quota": 'secrets "x" is forbidden: exceeded quota: nothing, requested: secrets=1',
    "Secret gone": "Secret vc-ml of namespace team-ml is not there. Look with: x",
    "Secret of others": "Secret vc-ml of namespace team-ml has in its key config what vCluster",
    "finalizers": "still there after 60 s: serve, train. Look with: kubectl get queues serve",
    "no answer": "configured Kubernetes cluster is unreachable: Client.Timeout exceeded",
    "queue of others": (
        "queue b is in the cluster already and was made by somebody else. Give yours another"
        " name; or: kubectl label queue b kai-fleet/tree=ml-queues"
    ),
    "no growth": (
        "the store of vCluster ml does not grow to 6Gi: the API answers 403 Forbidden: only"
        " dynamically provisioned pvc can be resized. Write the size before at vcluster.size"
    ),
    "no gang": (
        "KAI v0.16.8 with a gang of pods is not ready after 120 s. Missing: a node for pod"
        " kai-fleet-gang-1: the API answers 500. Look with: kubectl get pods"
    ),
    "unknown": "something new\nhappened",
}
REPAIRED_INSIDE = ("policy", "KAI not ready", "ConfigMap gone", "quota", "queue of others")


@pytest.mark.parametrize("case", REFUSED)
def test_explain_names_the_team_what_refused_and_the_command(case, texts):
    line = line_of(REFUSED[case])
    assert line.startswith("team ml: ")
    assert (INSIDE in line) == (case in REPAIRED_INSIDE)
    texts(line)


@pytest.mark.parametrize("words", ["uninstall: Release not loaded: ml", "ml: release: not found"])
def test_explain_a_release_is_gone_by_hand_or_with_its_namespace(words, texts):
    release = {"urn": VCLUSTER, "type": "kubernetes:helm.sh/v3:Release"}
    release["inputs"] = {"name": "ml", "namespace": "team-ml"}
    with serving() as (api, url):
        api.answers = {"/api/v1/namespaces/team-ml": (404, {})}
        gone = line_of(words, VCLUSTER, [release], host=url)
        after = line_of(words, VCLUSTER, [release], host=url, refreshed=True)
        api.answers = {"/api/v1/namespaces/team-ml": (200, {})}
        there = line_of(words, VCLUSTER, [release], host=url)
    assert gone.endswith(AGAIN) and "--refresh" not in after
    texts(gone, after, there)


def test_explain_a_queue_of_others_on_the_host_holds_up_its_team(texts):
    check = f"{TEAM}$kai-fleet:index:TeamNamespace$kai-fleet:index:QueueCheck::ml-queue"
    space = f"{TEAM}$kai-fleet:index:TeamNamespace::ml"
    words = "queue ml-eu is in the cluster already and belongs to the tree lab-queues. Give yours"
    words += " another name; or: kubectl label queue ml-eu --overwrite kai-fleet/tree=host-queues"
    assert held_up.by_team({check: words}, {**PARENTS, check: space}, {}) == {"ml": {check: words}}
    below = f"queue ml is left as it is, for it is below this: {words}"
    texts(line_of(words, check), line_of(below, check))


TAINT = 'pod b-1: each node has a taint: write tolerations: [{key: "gpu"}] at kai-fleet:teams.ml'
NOT_READY = "KAI v0.16.8 is not ready after 300 s. Missing: deployment b"
ENDED = {
    "taint": f"{NOT_READY}; {TAINT}. Look with: kubectl",
    "no class": (
        "StorageClass fast, which claim data-ml-0 names, is not there (there are: a). Make it, and"
        " run the update again"
    ),
    "no Service": ("Service ml of namespace team-ml is gone, and release ml stands. Make it again"),
}


@pytest.mark.parametrize("case", ENDED)
def test_explain_names_what_a_wait_found(case, texts):
    before = "KAI v0.16.8: waiting for the API does not answer (5 s)"
    texts(line_of(f'exit status 1: running "x":\n{before}\n{ENDED[case]}'))


def test_explain_says_the_end_of_a_long_message_where_the_cause_stands():
    """Helm's begin with what it tried: `failed pre-install: 1 error occurred: …`."""
    line = line_of(f"Helm Release kai: {'x ' * 400} the cause of it all")
    assert line.endswith("the cause of it all. Put that right")
    assert line.startswith("team ml: ml-queues: Helm Release kai: ")
    assert len(line) < 400


@pytest.mark.parametrize("name", ["x; rm -rf .", "$(x)", "-x", "x y", "`x`"])
def test_explain_no_name_that_kubernetes_would_not_take_gets_into_a_command(name):
    for words in (
        f"ValidatingAdmissionPolicy '{name}' with binding 'b' denied",
        f"ValidatingAdmissionPolicy 'b' with binding '{name}' denied",
        f'admission webhook "{name}" denied the request',
        f"still there after 60 s: {name}. Look with",
    ):
        assert not re.search("kubectl|helm|fleet", line_of(words)), words


def test_by_team_errors_are_a_teams_or_nobodys():
    """A part of team ml's KAI, not a part of a team that is called ml-kai."""
    ends = {"": "update failed", ROOT: "Resource monitor has terminated, shutting down"}
    assert held_up.by_team({RELEASE: "a", QUEUES: "b", **ends}, PARENTS, {}) == {
        "ml": {RELEASE: "a", QUEUES: "b"}
    }
    assert held_up.by_team(ends, PARENTS, {}) == {}
    host = f"{STACK}kai-fleet:index:Platform$kubernetes:core/v1:Namespace::host"
    assert held_up.by_team({RELEASE: "a", host: "b"}, PARENTS, {}) == {}
    assert held_up.by_team({WAIT: "exit status 75: running x"}, PARENTS, {}) == {}


@pytest.mark.parametrize("name", ["x::pulumi:pulumi:Stack::y", f"x::{TEAM[len(STACK) :]}::nlp"])
def test_by_team_a_refusal_is_its_teams_whatever_name_and_words(name):
    urn = f"{TEAM}$kubernetes:core/v1:ConfigMap::{name}"
    for message in ("no", "exit status 75: running x"):
        found = held_up.by_team({urn: message}, {**PARENTS, urn: ML}, {})
        assert found == {"ml": {urn: message}}


@pytest.mark.parametrize(
    ("provider", "kind", "teams"),
    [
        (HOST, "kubernetes:core/v1:Namespace", set()),  # nobody's update would go on
        (HOST, "kubernetes:helm.sh/v3:Release", {"ml"}),  # that of its registry
        (PROVIDER, "kubernetes:core/v1:Namespace", {"ml"}),
    ],
)
def test_by_team_an_api_server_without_answers_is_the_teams_that_it_serves(provider, kind, teams):
    resource = {"type": kind, "provider": f"{provider}::id"}
    error = {RELEASE: 'Get "https://x": net/http: request canceled (Client.Timeout exceeded)'}
    assert held_up.by_team(error, PARENTS, {RELEASE: resource}).keys() == teams


@pytest.fixture
def vcluster():
    """Its API server, and the address."""
    with serving() as both:
        yield both


def hooks(kind, name, hook, service=None):
    config = {"service": service} if service else {"url": "https://x"}
    item = {"metadata": {"name": name}, "webhooks": [{"name": hook, "clientConfig": config}]}
    return f"/apis/admissionregistration.k8s.io/v1/{kind}s", (200, {"items": [item]})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("validating", 'admission webhook \\"a.b\\" denied the request: no'),
        ("mutating", 'failed calling webhook "a.b": x509: unknown authority'),
        ("mutating", 'failed calling webhook "a.b": connection refused'),
    ],
    ids=["refuses", "not trusted", "no answer"],
)
def test_explain_finds_a_webhook_by_its_name(vcluster, kind, words, texts):
    api, url = vcluster
    kind = f"{kind}webhookconfiguration"
    for name in ("x; rm -rf .", "--all"):  # a tenant's server gets no name of its own into it
        path, api.answers[path] = hooks(kind, name, "a.b")
        assert name not in line_of(words, url=url)
    path, api.answers[path] = hooks(kind, "theirs", "a.b")
    line = line_of(words, url=url)
    assert line.endswith(f"{INSIDE}delete {kind}/theirs")
    texts(line)


def test_explain_a_webhook_of_kais_own_is_never_taken_away(vcluster, texts):
    api, url = vcluster
    service = {"namespace": "kai-scheduler", "name": "queue-controller"}
    path, api.answers[path] = hooks("validatingwebhookconfiguration", "kai-queues", "a.b", service)
    line = line_of('failed calling webhook "a.b": no endpoints', url=url)
    assert f"{INSIDE}delete namespace kai-scheduler && " in line
    texts(line)


def going(message, kind="NamespaceContentRemaining", **metadata):
    """A namespace that is deleted, with a condition of Kubernetes' namespace controller."""
    metadata = {"name": "team-ml", "deletionTimestamp": "2026-11-28T20:40:00Z", **metadata}
    conditions = [{"type": kind, "status": "True", "message": message}]
    return {"metadata": metadata, "status": {"conditions": conditions, "phase": "Terminating"}}


STAYING = {
    "urn": SPACE,
    "type": "kubernetes:core/v1:Namespace",
    "provider": f"{PROVIDER}::id",
    "inputs": {"kind": "Namespace", "metadata": {"name": "team-ml"}},
}


def test_explain_says_what_keeps_a_namespace(vcluster, texts):
    api, url = vcluster
    mine, kubernetes = ["tenant.example/stay"], ["kubernetes.io/pvc-protection"]
    stuck = going("configmaps. has 2 resource instances", finalizers=mine)
    api.answers["/api/v1/namespaces/team-ml"] = (200, stuck)
    deleted = {"deletionTimestamp": "2026-11-28T20:40:00Z"}
    items = [
        {"metadata": {"name": "a", "finalizers": mine, **deleted}},
        {"metadata": {"name": "b", "finalizers": kubernetes, **deleted}},
    ]
    api.answers["/api/v1/namespaces/team-ml/configmaps"] = (200, {"items": items})
    line = line_of("timed out waiting for the condition", SPACE, [STAYING], url=url)
    assert " configmaps a;" in line and " b" not in line
    texts(line)


def test_explain_looks_for_a_while_at_a_namespace_with_kinds_without_end(vcluster, monkeypatch):
    monkeypatch.setattr(hosts, "SECONDS", 1.0)
    api, url = vcluster
    kinds = " ".join(f"kind{n}. has 1 resource instances" for n in range(2000))
    monkeypatch.setattr(api, "otherwise", (200, {"items": []}))
    monkeypatch.setattr(api, "delay", 0.05)
    api.answers["/api/v1/namespaces/team-ml"] = (200, going(kinds))
    begun = time.monotonic()
    message = line_of("timed out waiting for the condition", SPACE, [STAYING], url=url)
    assert time.monotonic() - begun < 10
    assert "team-ml" in message and "kind0. " in message


def test_explain_a_command_names_some_of_what_stays(vcluster):
    api, url = vcluster
    api.answers["/api/v1/namespaces/team-ml"] = (
        200,
        going("configmaps. has 90 resource instances"),
    )
    metadata = {"finalizers": ["a.b/stay"], "deletionTimestamp": "2026-11-28T20:40:00Z"}
    stays = [{"metadata": {"name": f"a{n}", **metadata}} for n in range(90)]
    api.answers["/api/v1/namespaces/team-ml/configmaps"] = (200, {"items": stays})
    message = line_of("timed out waiting for the condition", SPACE, [STAYING], url=url)
    assert "configmaps/a19" in message and "configmaps/a20" not in message


class Engine:
    """A stack whose runs fail at what its tenants refuse, until they are left out.

    `op` is what they refuse; "" of what the engine could not even begin.
    """

    name = "prod"

    def __init__(self, tmp_path, refusing, message=DENIED, op="update", locked_after=9):
        self.workspace = SimpleNamespace(env_vars={}, work_dir=str(tmp_path))
        self.locked_after = locked_after
        self.refusing, self.message, self.op, self.left_out = refusing, message, op, []

    def up(self, *, on_event, exclude, **_):
        self.left_out.append(list(exclude or ()))
        if len(self.left_out) > self.locked_after:
            locked = automation.CommandResult("", "error: the stack is currently locked", 255)
            raise automation.errors.CommandError(locked)
        refused = [urn for urn in self.refusing if urn not in self.left_out[-1]]
        for urn in refused:
            top = f"{TEAM}::{urn.rpartition('::')[2].partition('-')[0]}" if TEAM in urn else ROOT
            begun = {"op": self.op, "urn": urn, "type": "x", "provider": ""}
            begun["new"] = {"urn": urn, "type": "x", "parent": top, "inputs": {}}
            for kind in ("resourcePreEvent", "resOpFailedEvent") if self.op else ():
                on_event(event(kind, {"metadata": begun, "status": 1, "steps": 1}))
            message = f"<{{%reset%}}>{self.message}<{{%reset%}}>\n"
            diagnostic = {"urn": urn, "message": message, "severity": "error", "color": "raw"}
            on_event(event("diagnosticEvent", diagnostic))
        if refused:
            raise automation.errors.CommandError(
                automation.CommandResult("", "error: update failed", 255)
            )

    refresh = up

    def preview(self, **options):
        self.up(exclude=(), **options)

    destroy = preview


def event(kind, content):
    return automation.EngineEvent.from_json({"sequence": 1, "timestamp": 0, kind: content})


def queues_of(team):
    return f"{TEAM}$kai-fleet:index:Queues::{team}-queues"


@pytest.fixture
def updated(tmp_path, monkeypatch):
    """What an update says, and what each of its runs left out."""
    known = known_of(*({"urn": urn, "type": "x", "parent": ML} for urn in (queues_of("ml"), KAI)))
    monkeypatch.setattr(state, "exported", lambda *_: known)

    def run(*refusing, **more):
        engine = Engine(tmp_path, list(refusing), **more)
        with pytest.raises(EngineError) as why:
            runs.up(engine)
        return str(why.value), engine.left_out

    return run


@pytest.mark.parametrize("teams", [["ml"], ["ml", "nlp"]])
def test_up_what_tenants_refuse_fails_alone_in_one_run(updated, teams):
    message, left_out = updated(*map(queues_of, teams))
    assert left_out == [[]]
    assert message.startswith("the update is done, but for team ml")
    assert all(f"\nteam {team}: " in message for team in teams)


@pytest.mark.parametrize("op", ["", "delete-replaced"])
def test_up_leaves_out_what_the_engine_cannot_go_on_beside(updated, op):
    message, left_out = updated(queues_of("ml"), op=op)
    assert left_out == [[], [queues_of("ml")]]
    assert message.startswith("the update is done, but for team ml\nteam ml: ")


def test_an_update_has_begun_whose_first_run_changed_something(tmp_path, updated):
    engine = Engine(tmp_path, [queues_of("ml")], op="delete-replaced", locked_after=1)
    with pytest.raises(EngineError) as why:
        runs.up(engine)
    assert len(engine.left_out) == 2
    assert why.value.began


@pytest.mark.parametrize(
    ("message", "teams"),
    [(DENIED, ("ml",)), (f"Resource monitor has terminated: {DENIED}", ())],
)
def test_an_update_that_ended_early_is_done_for_no_team(tmp_path, updated, message, teams):
    with pytest.raises(EngineError) as why:
        runs.up(Engine(tmp_path, [queues_of("ml")], message))
    assert "for team ml" in str(why.value)
    assert why.value.teams == teams


@pytest.fixture
def unreadable(tmp_path, monkeypatch):
    """What an operation says that can read the state so often, and not again."""
    no_host = automation.CommandResult("", "error: no such host state.example.com", 255)

    def run(operate, *refusing, times=1, known=None, **more):
        left = [known or State()] * times

        def exported(*_):
            if not left:
                raise automation.errors.CommandError(no_host)
            return left.pop()

        monkeypatch.setattr(state, "exported", exported)
        engine = Engine(tmp_path, list(refusing), **more)
        with pytest.raises(EngineError) as why:
            operate(engine)
        return str(why.value), engine.left_out

    return run


OPERATIONS = {
    "update": runs.up,
    "preview": lambda engine: runs.preview(engine, lambda: None, details=False),
    "removal": runs.destroy,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("urn", [queues_of("ml"), f"{STACK}a:b:C::own-queues"])
def test_a_state_that_cannot_be_read_hides_no_failure(unreadable, capsys, operation, urn):
    times = 0 if operation == "preview" else 1
    message, _ = unreadable(OPERATIONS[operation], urn, times=times)
    assert "no-queues" in message
    assert message.startswith(f"the {operation} ")
    assert ("team ml: " in message) == ("ml-queues" in urn)
    said = capsys.readouterr().err
    assert said.count("reading the state failed: no such host state.example.com") == 1


def test_without_a_state_no_run_leaves_anything_out(unreadable, capsys):
    """What is in the same vCluster is not known: the engine would wait for it."""
    message, left_out = unreadable(runs.up, queues_of("ml"), op="delete-replaced")
    assert left_out == [[]]
    assert "team ml: " in message and "no-queues" in message
    assert "reading the state failed" in capsys.readouterr().err


def test_a_state_that_cannot_be_read_after_the_second_run_hides_no_failure(unreadable, capsys):
    message, left_out = unreadable(runs.up, queues_of("ml"), op="delete-replaced", times=3)
    assert left_out == [[], [queues_of("ml")]]
    assert message.startswith("the update is done, but for team ml\nteam ml: ")
    assert "reading the state failed" in capsys.readouterr().err


def test_beside_is_what_is_in_its_vcluster():
    inside = [{"urn": urn, "type": "x", "deletedWith": PROVIDER} for urn in (QUEUES, RELEASE)]
    known = known_of(*inside, {"urn": VCLUSTER, "type": "x"}, {"urn": WAIT, "type": "x"})
    assert held_up.with_same_vclusters([QUEUES], known.resources) == {QUEUES, RELEASE}
    assert held_up.with_same_vclusters([VCLUSTER], known.resources) == {VCLUSTER}


def test_up_names_the_error_and_not_what_the_plugin_says_before_it(updated, texts):
    """The closing line has room for 300 characters."""
    see = f"See https://www.pulumi.com/{'x' * 300} for troubleshooting help\n"
    lead = (
        f'resource "{queues_of("ml")}" was not successfully created by the Kubernetes API server: '
    )
    conflict = 'Apply failed with 1 conflict: conflict with "pulumi-kubernetes-1": .spec.x'
    named = f"{lead}Server-Side Apply field conflict detected. {see}{conflict}"
    message, _ = updated(queues_of("ml"), message=named)
    assert conflict in message
    texts(message)


def test_up_a_host_that_fails_a_teams_wait_is_no_fault_of_the_team(updated, texts):
    message, left_out = updated(WAIT, message="exit status 75: the API answers 500")
    assert left_out == [[]]
    texts(message)


def test_up_ends_at_what_is_of_no_team(updated):
    message, left_out = updated(queues_of("ml"), f"{STACK}a:b:C::own-queues")
    assert left_out == [[]]
    assert message.startswith("the update failed")


def refresh(engine):
    runs._prepare(Operation(engine, "", Signals(), Deletions(engine)), refresh=True)


def test_refresh_goes_on_without_a_vcluster_that_fails_it(tmp_path, monkeypatch, capsys, texts):
    """What the team has on the host is refreshed all the same."""
    inside = {"urn": queues_of("ml"), "type": "x", "deletedWith": PROVIDER}
    monkeypatch.setattr(state, "exported", lambda *_: known_of(inside, {"urn": ML, "type": "x"}))
    engine = Engine(tmp_path, [queues_of("ml")], "the API answers 500")
    refresh(engine)
    assert engine.left_out == [[], [queues_of("ml")]]
    texts(capsys.readouterr().err)


def test_refresh_names_what_does_not_answer_before_it_reads_the_state_again(unreadable, capsys):
    known = known_of({"urn": queues_of("ml"), "type": "x", "deletedWith": PROVIDER})
    message, _ = unreadable(
        lambda engine: runs.up(engine, refresh=True), queues_of("ml"), known=known
    )
    assert "no such host" in message
    assert "vCluster ml does not answer" in capsys.readouterr().err


def test_refresh_a_name_that_begins_like_anothers(tmp_path, monkeypatch, capsys, texts):
    longer = f"{PROVIDER}-2"
    feigned = f"{TEAM}$kubernetes:core/v1:ConfigMap::x:VirtualCluster$pulumi:providers:y"
    known = known_of(*({"urn": urn, "type": "x"} for urn in (PROVIDER, longer, feigned)))
    monkeypatch.setattr(state, "exported", lambda *_: known)
    errors = [f"error: no client for {longer}::id, {feigned}"]

    def run(**_):
        if errors:
            raise automation.errors.CommandError(automation.CommandResult("", errors.pop(), 255))

    engine = Engine(tmp_path, [])
    engine.refresh = run
    refresh(engine)
    said = capsys.readouterr().err
    assert said.startswith("vCluster ml-2 ")
    texts(said)


def test_refresh_what_a_failed_one_dropped_is_not_named_to_the_next(tmp_path, monkeypatch):
    """The engine refuses an `--exclude` of a URN that its state does not have."""
    inside = {"urn": queues_of("ml"), "type": "x", "deletedWith": PROVIDER}
    gone = {"urn": RELEASE, "type": "x", "deletedWith": PROVIDER}
    states = iter([known_of(inside, gone)])
    monkeypatch.setattr(state, "exported", lambda *_: next(states, known_of(inside)))
    engine = Engine(tmp_path, [queues_of("ml")], "the API answers 500")
    refresh(engine)
    assert engine.left_out == [[], [queues_of("ml")]]


@pytest.mark.parametrize("needed", [False, True])
def test_refresh_finishes_first_a_removal_that_a_kill_cut_off(tmp_path, monkeypatch, needed):
    """Helm upgrades no release that it was uninstalling."""
    half = {"urn": VCLUSTER, "type": "kubernetes:helm.sh/v3:Release"}
    half |= {"outputs": {"status": {"status": "uninstalling"}}}
    user = {"urn": KAI, "type": "x", "dependencies": [VCLUSTER] if needed else []}
    monkeypatch.setattr(state, "exported", lambda *_: known_of(half, user))
    engine, finished = Engine(tmp_path, []), []
    engine.destroy = lambda *, target, **_: finished.extend(target)
    refresh(engine)
    assert finished == ([] if needed else [VCLUSTER])


@pytest.mark.parametrize("there", [True, False])
def test_refresh_imports_what_a_killed_run_made(tmp_path, monkeypatch, capsys, there, texts):
    created = {"urn": SPACE, "type": "kubernetes:core/v1:ConfigMap", "parent": ML}
    created |= {"provider": f"{PROVIDER}::id"}
    created["inputs"] = {"metadata": {"name": "limits", "namespace": "team-ml"}}
    release = created | {"type": "kubernetes:helm.sh/v3:Release"}
    pending = [PendingOperation("creating", item) for item in (created, release)]
    known = State(pending=pending)
    monkeypatch.setattr(state, "exported", lambda *_: known)
    engine, imported = Engine(tmp_path, []), []

    def take(*, resources, **_):
        imported.extend(each["id"] for each in resources)
        if not there:
            raise automation.errors.CommandError(
                automation.CommandResult("", "error: update failed", 255)
            )

    engine.import_resources = take
    refresh(engine)
    assert imported == ["team-ml/limits"]
    texts(capsys.readouterr().err)


def test_up_after_a_run_that_was_cut_off_begins_nothing(tmp_path, monkeypatch, texts):
    release = {"urn": RELEASE, "type": "a:b:Release"}
    known = State(pending=[PendingOperation("updating", release)])
    monkeypatch.setattr(state, "exported", lambda *_: known)
    with pytest.raises(EngineError) as why:
        runs.up(Engine(tmp_path, []))
    texts(why.value)
    assert not why.value.began


LEFT = {
    "name": "cannot re-use a name that is still in use",
    "hook": 'failed pre-install: 1 error occurred: * jobs.batch "crd-upgrader" already exists',
}


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "host"])
def test_explain_takes_over_a_release_that_a_killed_run_left(inside, left, texts):
    inputs = {"name": "kai", "namespace": "kai-scheduler"}
    release = {"urn": RELEASE, "type": "kubernetes:helm.sh/v3:Release", "inputs": inputs}
    release |= {"provider": f"{PROVIDER if inside else HOST}::id"}
    line = line_of(LEFT[left], RELEASE, [release])
    assert (INSIDE in line) == inside
    texts(line)


def test_explain_what_refuses_on_the_host_is_not_looked_for_in_the_vcluster(texts):
    space = {"urn": SPACE, "type": "kubernetes:core/v1:Namespace", "provider": "x::host::id"}
    full = explained("etcdserver: mvcc: database space exceeded", SPACE, space)
    texts(explained(DENIED, SPACE, space), full)


def test_kubeconfig_of_a_state_is_used_for_its_certificates_only(texts):
    """It may be what a tenant wrote, where the stack is the team's own."""
    document = vcluster_secrets.config(server="https://10.0.0.1:443")

    def read(user):
        document["users"][0]["user"] |= user
        done = SimpleNamespace(stdout=json.dumps({"ml": yaml.safe_dump(document)}))
        cli = SimpleNamespace(run=lambda *_: done)
        workspace = SimpleNamespace(pulumi_command=cli, work_dir=".", env_vars={})
        return state.kubeconfig(SimpleNamespace(name="prod", workspace=workspace), "ml")

    assert yaml.safe_load(read({}))["users"] == document["users"]
    with pytest.raises(TenantKubeconfigError) as refused:
        read({"exec": vcluster_secrets.USER["exec"]})
    texts(refused.value)


def test_explain_a_server_that_answers_what_no_kubernetes_does_is_one_that_refuses(vcluster, texts):
    api, url = vcluster
    api.answers["/api/v1/namespaces/team-ml"] = (200, going("") | {"status": "x"})
    space = {"urn": SPACE, "type": "x", "deletedWith": PROVIDER}
    space["inputs"] = {"kind": "Namespace", "metadata": {"name": "team-ml"}}
    texts(line_of("timed out waiting for the condition", SPACE, [space], url=url))
