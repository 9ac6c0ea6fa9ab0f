"""The commands that the doctor prints, by what they do: those that test_doctor_mends.py runs."""

from __future__ import annotations

import re

_FLAG = re.compile(r"^--?(?:n|context|kube-context|kubeconfig|type|p|stack)$")

# These have mended what their finding names, in a test that ran the line as it was printed.
MEND = {
    "fleet up --refresh",
    "kubectl delete queue",
    "kubectl delete schedulingshard",
    "kubectl delete validatingwebhookconfiguration",
    "kubectl delete mutatingwebhookconfiguration",
    "kubectl delete networkpolicy",
    "kubectl delete clusterrole,clusterrolebinding",
    "kubectl delete pod",
    "kubectl delete deployment",
    "kubectl scale deployment",
    "kubectl scale statefulset",
    "kubectl patch queue",
    "kubectl rollout restart",
    "kubectl label node",
    "helm get manifest | kubectl apply",
    "helm uninstall",
}
# These only look: they have to run.
LOOK = {
    "kubectl get",
    "kubectl describe pod",
    "kubectl describe node",
    "kubectl logs",
    "kubectl version",
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
    if program == "fleet":
        return f"fleet {' '.join(rest)}"
    verb = rest[0]
    if verb in ("get", "logs", "version", "apply", "uninstall") and program == "kubectl":
        return f"kubectl {verb}"
    kept = 2 if program == "kubectl" or verb == "get" else 1
    return f"{program} {' '.join(rest[:kept])}"
