"""What a stack file writes as Kubernetes does: quantities, labels, tolerations, affinity."""

import re
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema, model_validator

from kai_fleet.quantities import QUANTITY, WORD, parse_quantity
from kai_fleet.settings.sections.models import Strict, like

# KAI counts cpu in millicores, memory in 10⁶ bytes and GPUs in devices, fractions allowed (Q3); a
# config writes `16`, `"500m"`, `64Gi`, and `unlimited` or, as KAI does, -1.
UNLIMITED: Final = -1.0


def cpu_millicores(value: Any) -> float:
    """Millicores of a cpu quantity; -1 for `unlimited`. More cores are memory's unit, as 16Gi."""
    most = 100_000_000, "cores", 16
    return round(_amount(value, 1000, 'cores such as 16, "500m"', most), 3)


def gpu_devices(value: Any) -> float:
    """GPUs of a quantity, fractions allowed; -1 for `unlimited`. More are a unit such as 8G."""
    return round(_amount(value, 1, "GPUs such as 4, 0.5", (1_000_000, "GPUs", 4)), 6)


def memory_megabytes(value: Any) -> float:
    """10⁶ bytes of a memory quantity, rounded to whole ones; -1 for `unlimited`."""
    amount = _amount(value, Decimal("1e-6"), "memory such as 64Gi")
    if 0 < amount < 1:
        number = re.split("[A-Za-z]", str(value).strip())[0]
        raise ValueError(f"{value} is less than a megabyte; write {number}Gi or {number}M")
    return float(round(amount))


def _amount(
    value: Any, factor: Decimal | int, example: str, most: tuple[int, str, int] | None = None
) -> float:
    if value in (WORD, -1, "-1"):
        return UNLIMITED
    amount = quantity(value, f"{example}, or {WORD}")
    if most is not None and amount > most[0]:
        raise ValueError(f"{value} is {amount:,.0f} {most[1]}; write a number such as {most[2]}")
    return float(amount * factor)


def quantity(value: Any, example: str) -> Decimal:
    """A quantity as Kubernetes reads it. Raises ValueError, with what to write."""
    try:
        return parse_quantity(value)
    except ValueError as why:
        raise ValueError(f"{why}; write {example}") from None


def _quantity(parse: Any, unit: str) -> Any:
    forms = [
        {"type": "number", "minimum": 0},
        {"enum": [WORD, -1]},
        {"type": "string", "pattern": f"^({QUANTITY.pattern})$"},
    ]

    def checked(value: Any) -> Any:
        parse(value)
        return value  # as it is written: a QueueTree counts in KAI's units

    schema = {"description": f"{unit}, or unlimited", "anyOf": forms}
    return Annotated[Any, BeforeValidator(checked), WithJsonSchema(schema)]


Cpu = _quantity(cpu_millicores, 'cores: 16 or "500m"')
Memory = _quantity(memory_megabytes, "bytes with a suffix: 64Gi")
Gpu = _quantity(gpu_devices, "GPUs, fractions allowed")

_WORD: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
ObjectName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
LabelKey = Annotated[str, like(rf"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_WORD}$", 317)]
LabelValue = Annotated[str, like(rf"^({_WORD})?$", 63)]
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
    decides = next((owner for owner in _DECIDING if domain.endswith(f".{owner}")), None)
    if decides is not None:
        raise ValueError(
            f"is of {decides}, by whose keys a cluster decides what a team may do; drop it, and"
            " write a key of your own domain, such as example.com/cost-centre"
        )
    return key


# A key of a label or an annotation that bounds nothing.
NotedKey = Annotated[LabelKey, AfterValidator(_noting)]


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

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        if self.operator == "Exists" and self.value is not None:
            raise ValueError("has a value, which Exists does not read; drop value, or write Equal")
        return self


class Affinity(Strict):
    """A pod's affinity; below these keys everything is Kubernetes' own."""

    node_affinity: dict[str, Any] | None = None
    """Nodes, by labels."""
    pod_affinity: dict[str, Any] | None = None
    """Near these pods."""
    pod_anti_affinity: dict[str, Any] | None = None
    """Away from these pods."""

    @property
    def spec(self) -> dict[str, Any]:
        """As a pod has it."""
        return self.model_dump(by_alias=True, exclude_none=True)
