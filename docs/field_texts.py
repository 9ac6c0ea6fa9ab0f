"""The texts of fields: docstrings under the fields of settings and of components' arguments."""

import ast
import inspect
import textwrap
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from itertools import pairwise

from pydantic_core import PydanticUndefined

from kai_fleet_stack.settings.sections.models import Strict


@cache
def docstrings(kind: type) -> dict[str, str]:
    """The docstrings under the fields that a class declares itself, by the field's name."""
    source = textwrap.dedent(inspect.getsource(kind))
    (declared,) = ast.parse(source).body
    texts = {}
    for field, below in pairwise(declared.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts


def arguments(model: type[Strict]) -> list[type]:
    """The TypedDicts whose fields describe those of a section."""
    paths = (path.rpartition(".") for path in model.described_by)
    return [getattr(import_module(f"kai_fleet.{module}"), name) for module, _, name in paths]


def text_of(model: type[Strict], name: str) -> str:
    """The text of a section's field: its own, else that of the argument of the same name, else "".

    A setting with a default has it in the schema, so what the argument's text says of it is left
    out.
    """
    own = own_text(model, name)
    if own:
        return own
    text = _first(name, arguments(model))
    has_default = model.model_fields[name].get_default() not in (None, PydanticUndefined)
    return text.partition(" Default: ")[0] if has_default else text


def own_text(model: type[Strict], name: str) -> str:
    """The text that a section, or one that it is derived from, has for a field; "" without one."""
    description = model.model_fields[name].description
    if description:
        return description
    # A generic section with its parameter filled in, `Share[Cpu]`, has no source of its own.
    declared = [kind for kind in model.__mro__ if issubclass(kind, Strict)]
    return _first(name, [kind for kind in declared if "[" not in kind.__name__])


def _first(name: str, kinds: Iterable[type]) -> str:
    found = (docstrings(kind).get(name) for kind in kinds)
    return next(filter(None, found), "")
