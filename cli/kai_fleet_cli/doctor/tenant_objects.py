"""What an API server that a tenant runs says its objects are called: commands are made of names.

Kubernetes lets no other characters into names and labels. A tenant is administrator of its vCluster
and of what answers for it, so that is looked at here: a fix is a line that an operator copies into
a shell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kai_fleet_cli.doctor.objects import Object

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
_LABEL: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_KEY: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

ODD: Final = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError)


def odd(why: Exception) -> str:
    """What there is to say of objects that no API server of Kubernetes' has."""
    return f"its API server answers what no Kubernetes does ({type(why).__name__})"


def named_well(items: object) -> list[Object]:
    """Those objects that have names as Kubernetes gives them; of their labels, those as well."""
    every = items if isinstance(items, list) else []
    return [_labelled_well(item) for item in every if _is_object(item)]


def _is_object(item: object) -> bool:
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    return (
        isinstance(metadata, Mapping)
        and _fits(_NAME, metadata.get("name"))
        and _fits(_NAME, metadata.get("namespace", "default"))
    )


def _labelled_well(item: dict[str, Any]) -> Object:
    labels = item["metadata"].get("labels") or {}
    if not isinstance(labels, Mapping):
        kept = {}
    else:
        kept = {key: it for key, it in labels.items() if _fits(_KEY, key) and _fits(_LABEL, it)}
    if kept == labels:
        return item
    return {**item, "metadata": {**item["metadata"], "labels": kept}}


def _fits(pattern: re.Pattern[str], text: object) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None
