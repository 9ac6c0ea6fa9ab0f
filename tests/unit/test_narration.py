"""What a person is shown of a run: made from events as the engine writes them."""

import pytest
from kai_fleet_cli.display.events import Narration
from kai_fleet_cli.display.preview import PreviewLines
from pulumi.automation.events import EngineEvent

STACK = "urn:pulumi:lab::kai-fleet::pulumi:pulumi:Stack::kai-fleet-lab"
TEAM = "urn:pulumi:lab::kai-fleet::kai-fleet:index:Team::ml"
RELEASE = "kubernetes:helm.sh/v3:Release"
SECRET = "[secret]"


def event(**kind):
    return EngineEvent.from_json({"sequence": 0, "timestamp": 0, **kind})


def urn(token, name, above="kai-fleet:index:Team"):
    return f"urn:pulumi:lab::kai-fleet::{above}${token}::{name}"


def step(op, token, name, *, parent=TEAM, old=None, new=None, paths=()):
    def state(inputs):
        return None if inputs is None else {"parent": parent, "inputs": inputs}

    return {
        "metadata": {
            "op": op,
            "urn": TEAM if name == "ml" else urn(token, name),
            "type": token,
            "provider": "",
            "old": state(old),
            "new": state(new if new is not None or op == "delete" else {}),
            "detailedDiff": {path: {"diffKind": "update", "inputDiff": True} for path in paths},
        }
    }


def told(severity, message, of=STACK, **more):
    diagnostic = {"urn": of, "message": message, "severity": severity, "color": "raw", **more}
    return event(diagnosticEvent=diagnostic)


def policy(message, level="advisory", rule="kai-version-supported"):
    return event(
        policyEvent={
            "message": f"<{{%fg 3%}}>Why there is this rule.<{{%reset%}}>\n{message}",
            "color": "raw",
            "policyName": rule,
            "policyPackName": "kai-fleet",
            "policyPackVersion": "",
            "policyPackVersionTag": "",
            "enforcementLevel": level,
            "resourceUrn": urn(RELEASE, "ml-kai-release"),
        }
    )


def narrated(*events, color=False, home=""):
    lines: list[str] = []
    narration = Narration(lines.append, color=color, home=home)
    for it in events:
        narration.hear(it)
    return lines, narration


SAID = "KAI of ml: is v0.9.3: line v0.9 is out of support"
OF_THE_FILE = f"kai-fleet:teams.ml.scheduler.version: {SAID} [kai-version-supported]"


def test_a_warning_of_the_program_and_of_the_policy_pack_is_one_line():
    lines, _ = narrated(
        told(
            "warning", f"<{{%fg 3%}}>warning: <{{%reset%}}>{OF_THE_FILE}\n".replace("warning: ", "")
        ),
        told("warning", OF_THE_FILE),
        policy(SAID),
        policy(SAID),
    )
    assert lines == [f"warning: {OF_THE_FILE}"]


def test_what_the_policy_pack_refuses_is_said_where_the_program_only_warned():
    """Else an update fails for no reason that is shown."""
    lines, narration = narrated(told("warning", OF_THE_FILE), policy(SAID, "mandatory"))
    assert [line.partition(" ")[0] for line in lines] == ["warning:", "refused:"]
    assert narration.told_an_error


def test_what_only_the_policy_pack_knows_is_said_with_its_resource():
    lines, narration = narrated(policy("KAI of other: is odd"), policy(SAID, "mandatory", "a-rule"))
    on = "(Release ml-kai-release)"
    assert lines == [
        f"warning: KAI of other: is odd [kai-version-supported] {on}",
        f"refused: {SAID} [a-rule] {on}",
    ]
    assert narration.told_an_error


def test_a_resource_is_a_line_at_its_end_and_a_slow_one_at_its_start_too():
    quick, slow = "kubernetes:core/v1:Namespace", RELEASE
    lines, _ = narrated(
        event(resourcePreEvent=step("create", quick, "ml-namespace")),
        event(resourcePreEvent=step("create-replacement", slow, "ml-kai-release")),
        event(resOutputsEvent=step("create", quick, "ml-namespace")),
        event(resOutputsEvent=step("same", quick, "other")),
        event(resOutputsEvent=step("create-replacement", slow, "ml-kai-release")),
    )
    assert lines == [
        "± Release ml-kai-release creating replacement",
        "+ Namespace ml-namespace created",
        "± Release ml-kai-release created replacement",
    ]


def test_a_namespace_that_goes_is_told_at_its_start_too():
    """It goes once its last pod has ended."""
    made = step("create", "kubernetes:core/v1:Namespace", "ml-namespace")
    gone = step("delete", "kubernetes:core/v1:Namespace", "ml-namespace", old={})
    shown, _ = narrated(
        *(
            event(**{at: it})
            for it in (made, gone)
            for at in ("resourcePreEvent", "resOutputsEvent")
        )
    )
    assert shown == [
        "+ Namespace ml-namespace created",
        "- Namespace ml-namespace deleting",
        "- Namespace ml-namespace deleted",
    ]


def test_passing_states_and_identifiers_are_no_news():
    command = urn("command:local:Command", "ml-ready")
    lines, _ = narrated(
        told("info", "quotas do not match yet", command, ephemeral=True),
        told("debug", "x"),
        told("info", "e893c53d-3f76-4bad-a1fa-048455446a3e", command),
        told("info", "KAI v0.9.3 is ready after 0 s", command),
        told("info", "v0.9.3 → v0.16.8 upgrades in place", TEAM),
    )
    assert lines == [
        "  ml: KAI v0.9.3 is ready after 0 s",
        "  Team ml: v0.9.3 → v0.16.8 upgrades in place",
    ]


def waits(team, what, seconds):
    step = urn("command:local:Command", f"{team}-kai-ready")
    return told("info", f"KAI v0.9.3: waiting for {what} ({seconds} s)\n", step)


def test_a_log_is_told_what_is_new_of_a_step_that_waits():
    """Not every five seconds the same, with another number behind it."""
    of_vision = [waits("vision", "pods", seconds) for seconds in range(5, 100, 5)]
    lines, _ = narrated(waits("ml", "pods", 5), *of_vision, waits("ml", "a queue", 10))
    assert lines == [
        "  ml: KAI v0.9.3: waiting for pods (5 s)",
        *(
            f"  vision: KAI v0.9.3: waiting for pods ({seconds} s)"
            for seconds in (5, 10, 20, 40, 80)
        ),
        "  ml: KAI v0.9.3: waiting for a queue (10 s)",
    ]


def test_on_a_terminal_what_waits_is_one_line_that_changes():
    lines, passing = [], []
    narration = Narration(lines.append, color=True, passing=passing.append)
    for it in (waits("ml", "pods", 5), waits("nlp", "pods", 5), waits("ml", "pods", 10)):
        narration.hear(it)
    assert (lines, len(passing)) == ([], 3)
    assert passing[-1] == "  2 steps wait; ml: KAI v0.9.3: waiting for pods (10 s)"
    ready = "KAI v0.9.3 is ready after 12 s"
    narration.hear(told("info", ready, urn("command:local:Command", "ml-kai-ready")))
    assert lines == [f"  ml: {ready}"]
    assert passing[-1] == "  nlp: KAI v0.9.3: waiting for pods (5 s)"
    narration.ended()
    assert passing[-1] == "", "nothing is left on the line of what comes next"


def test_the_sandboxes_own_plugin_is_no_news_in_each_run():
    """It is older than the SDK asks for, which `make up` says once. Your own plugin is news."""
    using = "using pulumi-resource-kubernetes from $PATH at /{}/bin/pulumi-resource-kubernetes"
    older = "resource plugin kubernetes is expected to have version >=4.34.2, but has {}; the wrong"
    lines, _ = narrated(
        told("warning", using.format("sandbox"), of=""),
        told("warning", older.format("4.24.0+20260115"), of=""),
        told("warning", using.format("usr"), of=""),
        told("warning", older.format("4.24.0"), of=""),
        home="/sandbox/pulumi-home",
    )
    assert lines == [f"warning: {using.format('usr')}", f"warning: {older.format('4.24.0')}"]


def test_an_error_is_said_once_with_its_resource():
    mistake = "the stack's configuration has 1 mistake:\n  key: is odd"
    lines, _ = narrated(
        told("error", mistake),
        told("error", f"an unhandled error occurred: {mistake}"),
        told("error", "quota exceeded", urn(RELEASE, "ml-release")),
    )
    assert lines == [f"error: {mistake}", "error: Release ml-release: quota exceeded"]


@pytest.mark.parametrize("by_event", [True, False])
def test_a_failure_that_no_event_tells_shows_what_the_engine_printed(by_event):
    lines, narration = narrated(*([told("error", "why")] if by_event else []))
    narration.keep("error: passphrase must be set")
    narration.failed()
    assert ("error: passphrase must be set" in lines) is not by_event


@pytest.mark.parametrize(
    ("operation", "began"), [("same", False), ("read", False), ("create", True)]
)
def test_a_run_has_begun_once_it_changes_something(operation, began):
    _, narration = narrated(event(resourcePreEvent=step(operation, RELEASE, "ml-release")))
    assert narration.began is began


def test_a_failed_step_is_kept_with_what_the_engine_said_of_it():
    _, narration = narrated(
        told("error", "it exists ", urn(RELEASE, "ml-release")),
        told("error", "already", urn(RELEASE, "ml-release")),
        event(resOpFailedEvent={**step("create", RELEASE, "ml-release"), "status": 1, "steps": 1}),
    )
    ((failed, said),) = narration.failed_steps
    assert (failed.urn, said) == (urn(RELEASE, "ml-release"), "it exists already")


def previewed(*steps, color=False):
    found = PreviewLines()
    for it in steps:
        found.hear(event(resourcePreEvent=it))
    return found.lines(color=color)


def test_a_preview_has_a_line_per_change_and_counts_the_rest():
    before = {"version": "v0.9.3", "values": {"a": 1, "token": SECRET, "b": {"c": "x" * 99}}}
    after = {"version": "v0.16.8", "values": {"a": 1, "token": SECRET, "b": {"c": "y" * 99}}}
    hard = {"hard": {"requests.nvidia.com/gpu": 2}}, {"hard": {"requests.nvidia.com/gpu": 3}}
    lines = previewed(
        step("same", RELEASE, "other"),
        step("update", RELEASE, "ml-kai-release", old=before, new=after,
             paths=("values.b.c", "values.token", "values.d[0]", "version")),
        step("update", "kubernetes:core/v1:ResourceQuota", "ml-gpus",
             old={"spec": hard[0]}, new={"spec": hard[1]},
             paths=('spec.hard["requests.nvidia.com/gpu"]',)),
        step("delete", "kubernetes:core/v1:Namespace", "old", old={}),
        step("create-replacement", "command:local:Command", "c"),
        step("replace", "command:local:Command", "c"),
        step("delete-replaced", "command:local:Command", "c", old={}),
    )  # fmt: skip
    assert lines == [
        "~ Release ml-kai-release: version v0.9.3 → v0.16.8, values.b.c, values.token, and 1 more",
        '~ ResourceQuota ml-gpus: spec.hard["requests.nvidia.com/gpu"] 2 → 3',
        "- Namespace old",
        "± Command c",
        "2 to update, 1 to delete, 1 to replace, 1 unchanged.",
    ]


def test_a_provider_of_the_engines_own_is_neither_told_nor_counted():
    """An update's own count has none; a provider that a team called default declares is one."""
    token = "pulumi:providers:kubernetes"
    own = step("create", token, "default_4_34_2", parent=STACK)
    own["metadata"]["urn"] = f"urn:pulumi:lab::kai-fleet::{token}::default_4_34_2"
    of_team = step("create", token, "default")
    assert previewed(own, of_team) == ["+ kubernetes default", "1 to create, 0 unchanged."]
    lines, _ = narrated(event(resOutputsEvent=own), event(resOutputsEvent=of_team))
    assert lines == ["+ kubernetes default created"]


def test_more_than_a_screen_is_a_line_per_team():
    steps = [step("create", "kai-fleet:index:Team", "ml", parent=STACK)]
    steps += [step("create", "kubernetes:core/v1:Secret", f"s{number}") for number in range(60)]
    assert previewed(*steps) == [
        "+ Team ml: 61 resources to create",
        "61 to create, 0 unchanged.",
    ]


def test_colours_are_for_a_terminal():
    (line, _) = previewed(step("create", RELEASE, "r"), color=True)
    assert line == "\033[32m+\033[0m Release r"


def test_what_a_tenant_says_moves_no_cursor():
    """The engine repeats what a pod, or the API server of a vCluster, says."""
    shown = []
    run = Narration(shown.append, color=True)
    evil = "a\x1b[2Jb\x9b1mc\rd\u202ee"
    run.hear(told("error", evil))
    run.hear(told("info", f"also {evil}"))
    run.hear(policy(f"pod x: {evil}"))
    run.hear(event(stdoutEvent={"message": evil, "color": "raw"}))
    assert len(shown) == 4
    for line in shown:
        assert "a[2Jb1mcde" in line
