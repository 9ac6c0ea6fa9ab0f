"""What a run says of the teams that held it up: whose cluster refused, what there, the repair."""

import pytest

from kai_fleet_cli.recovery import held_up
from kai_fleet_cli.recovery.state import ExportedState

STACK = "urn:pulumi:prod::kai-fleet::"
TEAM = "kai-fleet:index:Team"
ML, NLP = f"{STACK}{TEAM}::ml", f"{STACK}{TEAM}::nlp"
KAI = f"{STACK}{TEAM}$kai-fleet:index:KaiScheduler::ml-kai"
RELEASE = (
    f"{STACK}{TEAM}$kai-fleet:index:KaiScheduler$kubernetes:helm.sh/v3:Release::ml-kai-release"
)
QUEUES = f"{STACK}{TEAM}$kai-fleet:index:QueueTree$kai-fleet:index:Queues::ml-queues"
GPU = f"{STACK}kai-fleet:index:GpuStack::gpu"
WHOLE = f"{STACK}pulumi:pulumi:Stack::kai-fleet-prod"
PARENTS = {RELEASE: KAI, KAI: ML, QUEUES: ML, ML: WHOLE, NLP: WHOLE, GPU: WHOLE}
NOTHING_DEPLOYED = ExportedState({"resources": []})
IN_KUBECTL = "kubectl --kubeconfig ml.kubeconfig"


def test_errors_are_told_by_team():
    errors = {QUEUES: "refused", RELEASE: "refused, too", NLP: "no answer"}
    assert held_up.by_team(errors, PARENTS) == {
        "ml": {QUEUES: "refused", RELEASE: "refused, too"},
        "nlp": {NLP: "no answer"},
    }


@pytest.mark.parametrize("said", ["update failed", "Resource monitor has terminated"])
def test_what_is_said_of_the_whole_stack_is_no_error_of_its_own(said):
    errors = {QUEUES: "refused", "": said, WHOLE: said}
    assert held_up.by_team(errors, PARENTS) == {"ml": {QUEUES: "refused"}}


def test_an_error_of_the_platform_is_no_teams():
    assert held_up.by_team({QUEUES: "refused", GPU: "no such chart"}, PARENTS) == {}


@pytest.mark.parametrize(
    ("error", "cause", "command"),
    [
        (
            "ValidatingAdmissionPolicy 'no-queues' with binding 'bound' denied request: no",
            "ValidatingAdmissionPolicy no-queues in its vCluster refuses it",
            f"{IN_KUBECTL} delete ValidatingAdmissionPolicy/no-queues"
            " ValidatingAdmissionPolicyBinding/bound",
        ),
        (
            "KAI v0.16.8 is not ready after 300 s",
            "its KAI does not get ready",
            f"{IN_KUBECTL} delete namespace kai-scheduler && .venv/bin/fleet up --refresh"
            " --stack prod",
        ),
        (
            'admission webhook "hook.example.com" denied the request',
            "webhook hook.example.com of validatingwebhookconfigurations --all in its vCluster",
            f"{IN_KUBECTL} delete validatingwebhookconfigurations --all",
        ),
        (
            "Secret vc-ml of namespace team-ml is not there",
            "somebody deleted Secret vc-ml of namespace team-ml",
            "rollout restart statefulset",
        ),
        (
            "etcdserver: mvcc: database space exceeded",
            "the store of its vCluster is full",
            ".venv/bin/fleet team remove ml --stack prod",
        ),
        (
            "the API does not answer: it cannot be connected to: Connection refused",
            "the API of its vCluster does not answer as Kubernetes does",
            "rollout restart statefulset",
        ),
        (
            "something that nobody has seen yet",
            "something that nobody has seen yet",
            ".venv/bin/fleet team remove ml --stack prod",
        ),
    ],
)
def test_team_cause_and_command_are_named_once(error, cause, command):
    text = held_up.explain(
        "the update is done, but for", "prod", {"ml": {QUEUES: error}}, NOTHING_DEPLOYED
    )
    assert text.startswith("the update is done, but for team ml\nteam ml: ")
    assert cause in text
    assert command in text
    assert text.count("run the same command again") == 1
