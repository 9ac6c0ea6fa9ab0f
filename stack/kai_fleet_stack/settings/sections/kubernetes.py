"""Types of values that are written as in Kubernetes: quantities, labels, tolerations, affinity."""

from collections.abc import Collection
from decimal import Decimal
from ipaddress import ip_network
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from kai_fleet.queues.amounts import WORD, means_unlimited
from kai_fleet.releases import queue_bounds
from kai_fleet_stack.settings.sections.models import Strict, like, refuse
from kai_usage.quantities import QUANTITY, parse_quantity

_FORMS = (
    {"type": "number", "minimum": 0},
    {"type": "string", "pattern": f"^({QUANTITY.pattern})$"},
)


def _quantity(example: str, *, most: int, least: int = 0) -> tuple[Any, Any]:
    """Two types for a quantity that is 0 or from `least` to `most`, in cores, bytes or GPUs.

    Both keep the quantity as it is written, because components convert it. Both refuse null.

    Args:
        example: the unit and examples, for messages and the schema. The first word is the unit.
        most: in that unit, as is `least`.

    Returns:
        The type for a queue, which may be unlimited, and the type for a bound, which is a text.
    """
    or_unlimited = f"{example}, or {WORD}"

    def refuse_other(value: object, write: str) -> None:
        """Raise ValueError, with what to write, for no quantity and for one beyond the bounds."""
        try:
            amount = parse_quantity(value)
        except ValueError as why:
            raise ValueError(f"{why}; write {write}") from None
        if amount != 0 and not Decimal(least) <= amount <= most:
            unit = example.split()[0]
            raise ValueError(f"{value} is {amount:,f} {unit}; write {write}")

    def for_bound(value: object) -> str:
        """The quantity as a text. Raises ValueError for another value."""
        refuse_other(value, example)
        return str(value)

    def for_queue(value: object) -> object:
        """The value: a quantity, or one that means unlimited. Raises ValueError for another."""
        if not means_unlimited(value):
            refuse_other(value, or_unlimited)
        return value

    queue = {"description": or_unlimited, "anyOf": [*_FORMS, {"enum": [WORD, -1]}]}
    bound = {"description": example, "anyOf": list(_FORMS)}
    return (
        Annotated[Any, BeforeValidator(for_queue), WithJsonSchema(queue)],
        Annotated[str, BeforeValidator(for_bound), WithJsonSchema(bound)],
    )


# Amounts outside these bounds have the unit of another resource: 16Gi cores, 8G GPUs, 64m memory.
_MOST = queue_bounds.MOST
Cpu, Cpus = _quantity('cores such as 16, "500m"', most=_MOST["cpu"] // 1000)
Memory, Bytes = _quantity("bytes such as 64Gi", least=10**6, most=_MOST["memory"] * 10**6)
Gpu, _ = _quantity("GPUs such as 4, 0.5", most=_MOST["gpu"])

_WORD = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
ObjectName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
LabelKey = Annotated[str, like(rf"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_WORD}$", 317)]
LabelValue = Annotated[str, like(rf"^({_WORD})?$", 63)]
Port = Annotated[int, Field(ge=1, le=65535)]


Cidr = Annotated[
    str,
    like(r"^[0-9a-fA-F.:]+/[0-9]{1,3}$"),
    # It raises ValueError. An address with bits behind its mask is a network, too: 10.20.0.1/16.
    refuse(
        lambda text: not ip_network(text, strict=False),
        "is {value}, which is no network; write one such as 10.20.0.0/16 or fd00:1::/32",
    ),
]
# Domains of keys that other programs act on; users must not write them as notes.
_READ_BY_PROGRAMS = (
    # Kubernetes, the guards, KAI, vCluster, Pulumi and Helm.
    ".kubernetes.io",
    ".k8s.io",
    ".kai-fleet",
    ".kai.scheduler",
    ".run.ai",
    ".runai",
    ".loft.sh",
    ".pulumi.com",
    ".helm.sh",
    # Other admission controllers and networks, and the access control of clouds.
    ".openshift.io",
    ".gatekeeper.sh",
    ".openpolicyagent.org",
    ".kyverno.io",
    ".x-k8s.io",
    ".projectcalico.org",
    ".ovn.org",
    ".amazonaws.com",
    ".iam.gke.io",
)
# vCluster's chart selects its objects by these labels.
_READ_BY_CHART = ("app", "chart", "release", "heritage")


def _is_read_by_programs(key: str) -> bool:
    """Whether a cluster or vCluster's chart acts on labels and annotations with this key.

    A key with a domain is judged by that alone.
    """
    domain = key.rpartition("/")[0]
    return key in _READ_BY_CHART or f".{domain}".endswith(_READ_BY_PROGRAMS)


# A key of a label or an annotation that no program acts on.
NotedKey = Annotated[
    LabelKey,
    refuse(
        _is_read_by_programs,
        "is a key by which a cluster or a chart decides; drop it, and write a key of your own"
        " domain, such as example.com/cost-centre",
    ),
]


def in_domains(key: str, domains: Collection[str]) -> bool:
    """Whether the domain of a label's or annotation's key is one of `domains`, or below one.

    False for a key without a domain.
    """
    domain = key.rpartition("/")[0]
    return any(f".{domain}".endswith(f".{parent}") for parent in domains)


class Toleration(Strict):
    """A taint that all pods of a team tolerate."""

    described_by = ("declaring.inputs.TolerationArgs",)

    key: LabelKey
    operator: Literal["Equal", "Exists"] | None = None
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


# A pod's affinity. Kubernetes checks what is below these keys.
Affinity = dict[Literal["nodeAffinity", "podAffinity", "podAntiAffinity"], dict[str, Any]]
