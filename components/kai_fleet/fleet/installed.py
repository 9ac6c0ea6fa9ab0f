"""What a stack installs: a chart, where that is written, and its values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

ChartName: TypeAlias = Literal["kai", "vcluster", "gpu"]


@dataclass(frozen=True)
class InstalledChart:
    """One chart with its values, or another part of the settings that names images.

    `chart` is another one than the table's, None where that is taken. `path` is where `chart` and
    `values` stand; `stands` are the paths of values that were merged, the strongest first.
    `by_name`: on the host KAI's pods pass as such by the names of their images. `hidden`: part of
    it is a secret, so that no message repeats any of it. `own_stack`: it is a team stack's.
    """

    of: ChartName
    subject: str
    path: str
    chart: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    stands: tuple[tuple[str, Mapping[str, object]], ...] = field(default=(), hash=False)
    by_name: bool = False
    hidden: bool = False
    own_stack: bool = False

    def place_of(self, key: str) -> str:
        """The path of a value, where it is written."""
        if self.path.startswith("urn:"):
            return self.path
        steps = key.replace("[", ".[").split(".")
        stands = self.stands or ((f"{self.path}.values", {}),)
        for path, values in stands:
            if _has(values, steps):
                return f"{path}.{key}"
        return f"{stands[0][0]}.{key}"


def _has(values: object, steps: list[str]) -> bool:
    for step in steps:
        if not isinstance(values, Mapping):
            return True  # below here is one value, such as a list
        if step not in values:
            return False
        values = values[step]
    return True
