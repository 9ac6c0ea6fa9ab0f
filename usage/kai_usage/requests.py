"""A pod's requests of CPU, memory and devices, added up as Kubernetes does."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from kai_usage.amounts import Amounts, rounded
from kai_usage.keys import GPU_RESOURCES
from kai_usage.objects import Object
from kai_usage.quantities import parse_quantity

# By name in Kubernetes, in thousandths of a core, a byte or a device: sums of integers are exact.
Requests = Counter[str]


def requests_of(spec: Object) -> Requests:
    """The requests of a pod by its spec, in thousandths; a resource of which it asks 0 may lack.

    For each resource the larger of two amounts: that of all containers together, and that of the
    largest init container. Init containers that keep running (`restartPolicy: Always`) add to all
    containers, and to the init containers after them. A limit counts as the request if only the
    limit is written. The pod's overhead is added. Requests of the pod as a whole
    (`spec.resources`) are not read.
    """
    sidecars = Requests()
    starting = Requests()
    for container in spec.get("initContainers") or ():
        with_sidecars = sidecars + _container(container)
        starting |= with_sidecars  # the larger amount of each resource
        if container.get("restartPolicy") == "Always":
            sidecars = with_sidecars
    running = sum(map(_container, spec.get("containers") or ()), sidecars)
    return (running | starting) + read_resources(spec.get("overhead"))


def read_resources(resources: Mapping[str, str] | None) -> Requests:
    """Quantities by resource, such as a node's `allocatable`, in thousandths, rounded down.

    0 for what `parse_quantity` refuses, such as a negative amount, one above 10^18, or `100n`;
    empty for None. Raises TypeError for a list or a mapping in place of a quantity.
    """
    return Requests({name: _thousandths(text) for name, text in (resources or {}).items()})


def whole_gpus(requests: Requests) -> float:
    """The number of entire GPUs of all vendors, in devices; MIG resources do not count."""
    return sum(requests[name] for name in GPU_RESOURCES) / 1000


def amounts_of(requests: Requests, gpus: float | None = None) -> Amounts:
    """Requests as queues count them: GPUs, CPU in millicores, memory in 10^6 bytes.

    `requests` are in thousandths, by the names of Kubernetes. `gpus`, in devices, takes the place
    of the entire GPUs in them; None leaves these. The result has each of `RESOURCES`, 0 for what is
    not requested; other devices are left out.
    """
    if gpus is None:
        gpus = whole_gpus(requests)
    return {
        "gpu": rounded(gpus),
        "cpu": float(requests["cpu"]),
        "memory": rounded(requests["memory"] / 10**9),
    }


# Pods of one workload request the same. Typed: True equals 1.0, and is no quantity.
@lru_cache(maxsize=4096, typed=True)
def _thousandths(quantity: str) -> int:
    """A quantity in thousandths, rounded down; 0 for what `parse_quantity` refuses.

    Results are cached by value and type, so that true, which is refused, and the number 1 each
    have their own. What has no hash raises TypeError.
    """
    try:
        return int(parse_quantity(quantity) * 1000)
    except ValueError:
        return 0


def _container(container: Object) -> Requests:
    """The requests of one container in thousandths; for a resource without one its limit."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    return read_resources({**limits, **requests})
