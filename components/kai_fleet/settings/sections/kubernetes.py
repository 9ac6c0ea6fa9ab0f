"""What a stack file writes as Kubernetes does: quantities, labels, tolerations, affinity."""

from collections.abc import Collection
from decimal import Decimal
from ipaddress import ip_network
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from kai_fleet.releases import queue_bounds
from kai_fleet.settings.sections.models import Strict, like, refuse
from kai_fleet.values import QUANTITY, WORD, parse_quantity

_FORMS: Final = (
    {"type": "number", "minimum": 0},
    {"type": "string", "pattern": f"^({QUANTITY.pattern})$"},
)


def _quantity(example: str, *, most: int, least: int = 0) -> tuple[Any, Any]:
    """A quantity between two amounts, as it is written: QueueTree and quotas count in their units.

    Returns one of a queue, where it may be unlimited, and one of a bound, as text.
    """

    def of_bound(value: Any, write: str = example) -> str:
        try:
            amount = parse_quantity(value)
        except ValueError as why:
            raise ValueError(f"{why}; write {write}") from None
        if amount != 0 and not Decimal(least) <= amount <= most:
            raise ValueError(f"{value} is {amount:,f} {example.split()[0]}; write {write}")
        return str(value)

    def of_queue(value: Any) -> Any:
        if value not in (WORD, -1, "-1"):
            of_bound(value, f"{example}, or {WORD}")
        return value

    queue = {"description": f"{example}, or {WORD}", "anyOf": [*_FORMS, {"enum": [WORD, -1]}]}
    bound = {"description": example, "anyOf": list(_FORMS)}
    return (
        Annotated[Any, BeforeValidator(of_queue), WithJsonSchema(queue)],
        Annotated[str, BeforeValidator(of_bound), WithJsonSchema(bound)],
    )


# More are the unit of another: 16Gi cores, 8G GPUs, 64m of memory.
_MOST: Final = queue_bounds.MOST
Cpu, Cpus = _quantity('cores such as 16, "500m"', most=_MOST["cpu"] // 1000)
Memory, Bytes = _quantity("bytes such as 64Gi", least=10**6, most=_MOST["memory"] * 10**6)
Gpu, _ = _quantity("GPUs such as 4, 0.5", most=_MOST["gpu"])

_WORD: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
ObjectName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
LabelKey = Annotated[str, like(rf"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_WORD}$", 317)]
LabelValue = Annotated[str, like(rf"^({_WORD})?$", 63)]
Port = Annotated[int, Field(ge=1, le=65535)]


Cidr = Annotated[
    str,
    like(r"^[0-9a-fA-F.:]+/[0-9]{1,3}$"),
    refuse(
        lambda text: not ip_network(text, strict=False),
        "is {value}, which is no network; write one such as 10.20.0.0/16 or fd00:1::/32",
    ),
]
# Keys by which Kubernetes, the guards, KAI, vCluster and Pulumi decide: none to note something.
_DECIDING: Final = (
    *(".kubernetes.io", ".k8s.io", ".kai-fleet", ".kai.scheduler", ".run.ai", ".runai"),
    *(".loft.sh", ".pulumi.com", ".helm.sh"),
    # Others' admission and networks, and the rights of clouds.
    *(".openshift.io", ".gatekeeper.sh", ".openpolicyagent.org", ".kyverno.io", ".x-k8s.io"),
    *(".projectcalico.org", ".ovn.org", ".amazonaws.com", ".iam.gke.io"),
)
# By these vCluster's chart finds its own objects.
_OF_CHART: Final = ("app", "chart", "release", "heritage")


# A key of a label or an annotation that bounds nothing.
NotedKey = Annotated[
    LabelKey,
    refuse(
        lambda key: key in _OF_CHART or f".{key.rpartition('/')[0]}".endswith(_DECIDING),
        "is a key by which a cluster or a chart decides; drop it, and write a key of your own"
        " domain, such as example.com/cost-centre",
    ),
]


def in_domains(key: str, domains: Collection[str]) -> bool:
    """Whether a key of a label or an annotation is of one of these domains, or below one."""
    domain = key.rpartition("/")[0]
    return any(f".{domain}".endswith(f".{each}") for each in domains)


class Toleration(Strict):
    """A taint of nodes that everything of a team tolerates."""

    key: LabelKey
    """write the taint's key, such as nvidia.com/gpu"""
    operator: Literal["Equal", "Exists"] | None = None
    """Equal where there is a value, Exists where there is none."""
    value: LabelValue | None = None
    """The taint's value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The taint's effect; every one unless set."""


# A pod's affinity; below these keys everything is Kubernetes' own.
Affinity = dict[Literal["nodeAffinity", "podAffinity", "podAntiAffinity"], dict[str, Any]]
