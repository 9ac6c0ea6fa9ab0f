"""Keys and values of labels and annotations."""

from typing import Annotated, Final

from pydantic import AfterValidator, StringConstraints

LabelKey = Annotated[
    str,
    StringConstraints(
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        max_length=317,
    ),
]
LabelValue = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63)
]
# Keys by which Kubernetes, the guards, KAI, vCluster and Pulumi decide: none to note something.
_DECIDING: Final = (
    *("kubernetes.io", "k8s.io", "kai-fleet", "kai.scheduler", "run.ai", "runai"),
    *("loft.sh", "pulumi.com", "helm.sh"),
    # Others' admission and networks, and the rights of clouds.
    *("openshift.io", "gatekeeper.sh", "openpolicyagent.org", "kyverno.io", "x-k8s.io"),
    *("projectcalico.org", "ovn.org", "amazonaws.com", "iam.gke.io"),
)
# By these vCluster's chart finds its own objects.
_OF_CHART: Final = ("app", "chart", "release", "heritage")


def _noting(key: str) -> str:
    if key in _OF_CHART:
        raise ValueError(f"is the chart's own; write one of your domain, such as example.com/{key}")
    domain = f".{key.rpartition('/')[0]}"
    decides = next((it for it in _DECIDING if domain.endswith(f".{it}")), None)
    if decides is not None:
        raise ValueError(
            f"is of {decides}, by whose keys a cluster decides what a team may do; drop it, and"
            " write a key of your own domain, such as example.com/cost-centre"
        )
    return key


# A key of a label or an annotation that bounds nothing.
NotedKey = Annotated[LabelKey, AfterValidator(_noting)]
