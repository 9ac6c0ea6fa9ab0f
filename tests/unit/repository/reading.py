"""How a Python file reads: its tokens a line, and the places where a reader stops.

A code line is not empty, not a comment and not part of a docstring. Tokens are Python's names,
operators, numbers and strings. kr8s has 5.9 tokens a line, structlog 6.2, pulumi-eks-ml 4.9.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LONGEST_FUNCTION = 45  # lines
_COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_ANY = re.compile(r"\bAny\b")


@dataclass(frozen=True)
class Reading:
    """What was counted in one file; a stop is `line: why`."""

    path: Path
    code_lines: int
    tokens: int
    signatures: int
    signatures_with_any: int
    imports_in_functions: int
    stops: tuple[str, ...]

    @property
    def density(self) -> float:
        """Tokens a code line."""
        return self.tokens / max(1, self.code_lines)


def read(path: Path) -> Reading:
    """Count one file."""
    source = path.read_text()
    tree = ast.parse(source)
    in_docstrings = set(_docstring_lines(tree))
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    return Reading(
        path=path,
        code_lines=len(_code_lines(source) - in_docstrings),
        tokens=_tokens(source, in_docstrings),
        signatures=len(functions),
        signatures_with_any=sum(map(_has_any, functions)),
        imports_in_functions=sum(map(_imports, functions)),
        stops=tuple(_stops(tree)),
    )


def _docstring_lines(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if _is_text(statement):
                yield from range(statement.lineno, statement.end_lineno + 1)


def _is_text(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)


def _code_lines(source: str) -> set[int]:
    numbered = enumerate(map(str.strip, source.splitlines()), 1)
    return {number for number, line in numbered if line and not line.startswith("#")}


def _tokens(source: str, in_docstrings: set[int]) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    counted = [token for token in tokens if token.type in _COUNTED]
    return sum(token.start[0] not in in_docstrings for token in counted)


def _has_any(function: ast.FunctionDef) -> bool:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    named += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    hints = [argument.annotation for argument in named] + [function.returns]
    return any(_ANY.search(ast.unparse(hint)) for hint in hints if hint)


def _imports(function: ast.FunctionDef) -> int:
    return sum(isinstance(node, _IMPORTS) for node in ast.walk(function))


def _stops(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if why := _stop(node):
            yield f"{node.lineno}: {why}"


def _stop(node: ast.AST) -> str:
    if isinstance(node, _FUNCTIONS):
        lines = node.end_lineno - node.lineno + 1
        return f"{node.name} has {lines} lines" if lines > LONGEST_FUNCTION else ""
    if isinstance(node, ast.IfExp):
        parts = (node.body, node.orelse, node.test)
        nested = any(isinstance(part, ast.IfExp) for part in parts)
        return "a conditional expression in another one" if nested else ""
    if isinstance(node, _COMPREHENSIONS):
        return _of_comprehension(node)
    if isinstance(node, ast.Assign):
        return _of_assignment(node)
    if isinstance(node, ast.For) and isinstance(node.iter, ast.IfExp):
        return "a loop over a conditional expression"
    if isinstance(node, ast.Tuple):
        unpacked = [part for part in node.elts if isinstance(part, ast.Starred)]
        tuples = [part for part in unpacked if isinstance(part.value, ast.Tuple)]
        return "a tuple of unpacked tuples" if len(tuples) > 1 else ""
    return ""


def _of_comprehension(node: ast.ListComp) -> str:
    inner = [part for part in ast.walk(node) if part is not node]
    if any(isinstance(part, _COMPREHENSIONS) for part in inner):
        return "a comprehension in a comprehension"
    return "a comprehension with two loops" if len(node.generators) > 1 else ""


def _of_assignment(node: ast.Assign) -> str:
    both = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
    return "several things assigned in one line" if both else ""
