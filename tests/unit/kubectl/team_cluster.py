"""`kubectl fleet` against an API server of canned answers: a team with three queues."""

import json

from kubectl_fleet.__main__ import main
from tests.unit.components.cluster.canned_api import kubeconfig
from tests.unit.usage.usage_samples import (
    GROUP_A,
    GROUP_B,
    kai,
    node,
    pod,
    queue,
    reservation,
    served,
)

GPU = "nvidia.com/gpu"
PATHS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "queues": "/apis/scheduling.run.ai/v2/queues",
    "podgroups": "/apis/scheduling.run.ai/v2alpha2/podgroups",
    "deployments": "/apis/apps/v1/namespaces/kai-scheduler/deployments",
    "events": "/api/v1/events",
    "runtimeclasses": "/apis/node.k8s.io/v1/runtimeclasses",
    "persistentvolumeclaims": "/api/v1/persistentvolumeclaims",
    "replicasets": "/apis/apps/v1/replicasets",
    "statefulsets": "/apis/apps/v1/statefulsets",
    "jobs": "/apis/batch/v1/jobs",
}
PODS = [
    pod("a", "train", "ml-0", asks={GPU: "4", "cpu": "2500m", "memory": "1Gi"}),
    pod("b", "train", "ml-0", (GROUP_A,), gpu_fraction="0.5"),
    pod("c", "train", "ml-0", (GROUP_A, GROUP_B), gpu_memory="20480", gpu_fraction_num_devices="2"),
    pod("web", "serve", "ml-0", asks={"cpu": "1"}, namespace="web"),
    pod("nine", "train", asks={GPU: "9"}),
    reservation(GROUP_A, "ml-0", "GPU-0a"),
    reservation(GROUP_B, "ml-0", "GPU-1b"),
]
SAMPLES = {
    "nodes": [node("ml-0")],
    "pods": PODS,
    "queues": [
        queue("default", gpu=8),
        queue("train", "default", gpu=(4, 8), memory=(64000, 64000)),
        queue("serve", "default", gpu=4),
    ],
    "deployments": [served(kai(name="kai-scheduler-default"))],
}


class Team:
    """The server's answers, and the commands against it."""

    def __init__(self, handler, url, file, capsys):
        self.handler, self.url, self.file, self._capsys = handler, url, str(file), capsys
        file.write_text(kubeconfig(url))
        for kind in PATHS:
            self.has(kind, SAMPLES.get(kind, []))

    def has(self, kind, items, namespace=None):
        """Let it list these objects."""
        path = PATHS[kind].replace("/v1/", f"/v1/namespaces/{namespace}/" if namespace else "/v1/")
        self.handler.answers[path] = (200, {"items": items})

    def refuses(self, *kinds, status=403):
        """Let it refuse kinds."""
        for kind in kinds:
            message = f'{kind} is forbidden: User "me" cannot list resource "{kind}"'
            self.handler.answers[PATHS[kind]] = (status, {"message": message, "code": status})

    def run(self, *words):
        """What is printed; of a user's mistake the sentence on stderr."""
        try:
            main(list(words))
        except SystemExit as end:
            return str(end.code)
        return self._capsys.readouterr().out

    def reported(self, *words):
        """The same without line breaks and columns."""
        return " ".join(self.run(*words).split())

    def lines(self, *words):
        """The words of each line."""
        return [" ".join(line.split()) for line in self.run(*words).splitlines()]

    def json(self, *words):
        """What a command says to machines."""
        return json.loads(self.run(*words, "--json"))

    def waiting(self, *pods):
        """The one pod that waits, as `pending` says to machines."""
        self.has("pods", list(pods))
        (only,) = self.json("pending")["pending"]
        return only
