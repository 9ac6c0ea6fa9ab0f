"""What an hour of a GPU costs, for who pays."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

from kai_fleet.settings.sections.model import Strict

PRODUCT: Final = "nvidia.com/gpu.product"  # the label of a node that names the model of its GPUs
DEFAULT: Final = "default"


def _label_value(model: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", model):
        raise ValueError(
            f"is no value of a label; write what nodes have at {PRODUCT}, such as"
            f" NVIDIA-H100-80GB-HBM3, or {DEFAULT}"
        )
    return model


Model = Annotated[str, AfterValidator(_label_value)]
Price = Annotated[float, Field(ge=0, le=1_000_000)]


class Prices(Strict):
    """What `fleet report` counts the GPU-hours of teams and of idle nodes at."""

    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] = Field(
        description="Three capital letters, such as EUR."
    )
    gpu_hour: dict[Model, Price] = Field(
        min_length=1,
        description="The price of one GPU for an hour, by the value of its nodes' label"
        f" {PRODUCT}; `{DEFAULT}` is for every other model.",
    )

    def of(self, model: str) -> float | None:
        """The price of a model, "" for one that is not known; None where none is written."""
        return self.gpu_hour.get(model, self.gpu_hour.get(DEFAULT))
