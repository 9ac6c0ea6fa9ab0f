"""Other teams' pods by what Services lead to, and networks that no policy is about (T6, T7)."""

from typing import Any

from tests.attacks.attempts.attempt import EVERY_MODE, Attempt
from tests.attacks.objects import container, endpoint_slice, endpoints, pod, service


def _named(name: str) -> Any:
    return lambda _: service(type="ExternalName", externalName=name, selector=None)


_WITHIN = "isolation.network.endpoints: true"
REACH = [
    Attempt(
        "the address of somebody else",
        EVERY_MODE,
        lambda _: service(externalIPs=["10.0.0.1"]),
        "use a Service of type LoadBalancer",
    ),
    Attempt(
        "the address of somebody else, later",
        EVERY_MODE,
        lambda _: service(),
        "use a Service of type LoadBalancer",
        change=("", {"spec": {"externalIPs": ["10.0.0.1"]}}),
    ),
    Attempt("another team's Service", EVERY_MODE, _named("web.team-ml.svc.cluster.local"), _WITHIN),
    Attempt("another team's Service, in short", EVERY_MODE, _named("web.team-ml.svc"), _WITHIN),
    Attempt(
        "the cloud's metadata by name", EVERY_MODE, _named("metadata.google.internal"), _WITHIN
    ),
    Attempt("another team's pod as a name", EVERY_MODE, _named("10.1.2.3"), _WITHIN),
    Attempt(
        "another team's pod behind a Service of its own",
        EVERY_MODE,
        lambda _: endpoints("10.1.2.3"),
        "write a Service with a selector",
    ),
    Attempt(
        "a node's kubelet behind a Service of its own",
        EVERY_MODE,
        lambda _: endpoints("8.8.8.8", "192.168.1.10"),
        "write a Service with a selector",
    ),
    Attempt(
        "another team's pod in a slice",
        EVERY_MODE,
        lambda _: endpoint_slice("10.1.2.3"),
        "write a Service with a selector",
    ),
    Attempt(
        "another team's pod in a slice of IPv6",
        EVERY_MODE,
        lambda _: endpoint_slice("fd00::12", kind="IPv6"),
        "write a Service with a selector",
    ),
    Attempt(
        "the host's network by Multus",
        EVERY_MODE,
        lambda t: pod(t, annotations={"k8s.v1.cni.cncf.io/networks": "kube-system/host"}),
        "isolation.network.attachments: true",
    ),
    Attempt(
        "another default network by Multus",
        EVERY_MODE,
        lambda t: pod(t, annotations={"v1.multus-cni.io/default-network": "kube-system/host"}),
        "isolation.network.attachments: true",
    ),
    Attempt(
        "the host's network by Multus, later",
        EVERY_MODE,
        lambda t: pod(t),
        "isolation.network.attachments: true",
        change=("", {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "host"}}}),
    ),
    Attempt(
        "a role of the cloud by kube2iam",
        EVERY_MODE,
        lambda t: pod(t, annotations={"iam.amazonaws.com/role": "node"}),
        "isolation.annotations: [iam.amazonaws.com]",
    ),
    Attempt(
        "a role of the cloud by kube2iam, later",
        EVERY_MODE,
        lambda t: pod(t),
        "isolation.annotations: [iam.amazonaws.com]",
        change=("", {"metadata": {"annotations": {"iam.amazonaws.com/role": "node"}}}),
    ),
    Attempt(
        "the host of a probe",
        EVERY_MODE,
        lambda t: pod(t, container(livenessProbe={"tcpSocket": {"port": 80, "host": "10.0.0.1"}})),
        "probe or lifecycle host",
    ),
]
