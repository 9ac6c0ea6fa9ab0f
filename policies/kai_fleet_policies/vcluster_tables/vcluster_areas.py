"""The decisions in vcluster_areas.yaml about the values of vCluster's chart."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import yaml

_READ: Final[Mapping[str, Any]] = yaml.safe_load(
    (files(__package__) / "vcluster_areas.yaml").read_text(encoding="utf-8")
)
OWN: Final[Mapping[str, str]] = _READ["own"]
WRITTEN: Final = (*_READ["written"], *OWN)
BY_NAME: Final = frozenset(_READ["byName"])
VOLUMES: Final = frozenset(_READ["volumes"])
VOLUME_LISTS: Final = tuple(_READ["volumeLists"])
SECRET_KEYS: Final = frozenset(_READ["secretKeys"])
TEXTS: Final = tuple(_READ["texts"])

_DECIDED: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(_READ["allowed"]),
    **{key: reason for reason, keys in _READ["refused"].items() for key in keys},
}
_ABOVE: Final = frozenset(
    ".".join(key.split(".")[:n]) for key in (*_DECIDED, *OWN) for n in range(1, key.count(".") + 1)
)


# The reasons by which the rule refuses more than single keys.
RIGHTS: Final = str(_DECIDED["rbac.role"])
ELSEWHERE: Final = str(_DECIDED["exportKubeConfig.secret.namespace"])
OPEN: Final = str(_DECIDED["exportKubeConfig.server"])
UNJUDGED: Final = "nobody has judged for teams that are kept apart"


def decided(key: str) -> tuple[str, str | None] | None:
    """The longest key that decides about this one, and why it is refused; None: none does."""
    parts = key.split(".")
    for n in range(len(parts), 0, -1):
        above = ".".join(parts[:n])
        if above in _DECIDED:
            return above, _DECIDED[above]
    return None


def has_more_below(key: str) -> bool:
    """Whether single keys below this one are decided about by themselves."""
    return key in _ABOVE
