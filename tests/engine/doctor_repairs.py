"""The commands that the doctor prints: what they do, and running them as a person does."""

import re
import subprocess
import time
from collections.abc import Callable
from typing import Any

from kai_fleet_cli.doctor.diagnosis import diagnose
from kai_fleet_policies.finding import Finding, Level
from tests.engine.one_team import OneTeam
from tests.engine.sandbox_commands import typed

_FLAG = re.compile(r"^--?(?:n|context|kube-context|kubeconfig|type|p|stack)$")

# These repaired what their finding names, in a test that ran the line as it was printed.
REPAIR = {
    "fleet up --refresh",
    "kubectl delete queue",
    "kubectl delete schedulingshard",
    "kubectl delete configs/kai-config",
    "kubectl delete validatingwebhookconfiguration",
    "kubectl delete mutatingwebhookconfiguration",
    "kubectl delete networkpolicy",
    "kubectl delete clusterrole,clusterrolebinding",
    "kubectl delete pod",
    "kubectl delete secret",
    "kubectl get | xargs -r",
    "kubectl delete deployment",
    "kubectl scale deployment",
    "kubectl scale statefulset",
    "kubectl patch queue",
    "kubectl patch queues",
    "kubectl rollout restart",
    "kubectl label node",
    "helm get manifest | kubectl apply",
    "helm uninstall",
}
# Of these, those that test_planted_kubeconfig.py runs.
OF_KUBECONFIGS = {"kubectl delete secret", "kubectl rollout restart"}
# tests/unit/cli/recovery/test_full_store.py and tests/attacks/test_hold_ups.py ran these.
OF_STORES = {"kubectl patch pvc", "etcdctl() { | sed :"}
# tests/faults/test_lost_volume.py runs it: the vCluster begins anew.
OF_LOST_VOLUMES = {"kubectl delete serviceaccount"}
# These only look: they have to run.
LOOK = {
    "kubectl get",
    "kubectl describe pod",
    "kubectl describe node",
    "kubectl logs",
    "kubectl version",
    "pulumi refresh",
}


def shape(command: str) -> str:
    """What a command does, without the names in it: `kubectl delete queue`."""
    return " | ".join(_one(part.split()) for part in command.split(" | "))


def _one(words: list[str]) -> str:
    program, rest, skip = words[0].rpartition("/")[2], [], False
    for word in words[1:]:
        if skip:
            skip = False
        elif _FLAG.match(word):
            skip = True
        elif not word.startswith("--") or word == "--refresh":
            rest.append(word)
    if program == "pulumi":
        return f"pulumi {rest[0]}"
    if program == "fleet":
        return f"fleet {' '.join(rest)}"
    verb = rest[0]
    if verb in ("get", "logs", "version", "apply", "uninstall") and program == "kubectl":
        return f"kubectl {verb}"
    kept = 2 if program == "kubectl" or verb == "get" else 1
    return f"{program} {' '.join(rest[:kept])}"


class Repair:
    """Find what is reported, run its fix as printed, and see that it is gone."""

    def __init__(self, one_team: OneTeam) -> None:
        self.one_team = one_team
        self.ran: set[str] = set()

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line as a person does in the checkout, with the sandbox's tools."""
        self.ran.add(shape(command))
        sandbox = self.one_team.sandbox
        own = {**sandbox.env(), "KAI_FLEET_SANDBOX": str(sandbox.directory)}
        return typed(self.one_team.folder, command, **own)

    def found(self, check: str, words: str) -> list[Finding]:
        """The findings of a check with these words."""
        return [
            finding
            for finding in diagnose("sandbox").findings
            if finding.level is not Level.OK
            and finding.check == check
            and words in f"{finding.subject} {finding.cause}"
        ]

    def __call__(self, check: str, words: str, **fill: str) -> Finding:
        """`fill` are the places that a person fills in, such as `<node>`."""
        (finding,) = eventually(lambda: self.found(check, words))
        assert finding.commands, finding
        for command in finding.commands:
            for place, value in fill.items():
                command = command.replace(f"<{place}>", value)
            done = self.run(command)
            # Nobody writes logs here.
            assert done.returncode == 0 or " logs " in command, done
        eventually(lambda: not self.found(check, words))
        return finding


def eventually(true: Callable[[], Any]) -> Any:
    """What comes true in time; else everything that the doctor finds ill."""
    ends = time.monotonic() + 20
    while not (found := true()):
        assert time.monotonic() < ends, "\n".join(
            str(f.record()) for f in diagnose("sandbox").findings if f.level is not Level.OK
        )
        time.sleep(0.5)
    return found
