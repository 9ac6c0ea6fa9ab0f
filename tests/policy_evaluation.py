"""The guards' policies, evaluated on an object without an API server.

By Google's own evaluator of CEL, on the very files that a cluster gets: what `tests/attacks` sends
to an API server, a unit test asks here.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from kai_fleet.isolation.policies import as_annotations, policy

_INPUTS: Final = ("object", "oldObject", "params", "request", "namespaceObject", "variables")
_NAMED: Final = re.compile(r"\bvariables[.](\w+)")


def creation(
    resource: str, namespace: str, user: Mapping[str, Any], name: str = ""
) -> dict[str, Any]:
    """The request by which an object of a core kind is made."""
    return {
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": resource},
        "kind": {"kind": resource},
        "name": name,
        "namespace": namespace,
        "userInfo": dict(user),
    }


def account(namespace: str, name: str) -> dict[str, Any]:
    """A service account as the user of a request."""
    return {
        "username": f"system:serviceaccount:{namespace}:{name}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"],
    }


def controller() -> dict[str, Any]:
    """Kubernetes' controller of StatefulSets as the user of a request."""
    return account("kube-system", "statefulset-controller")


def refusals(
    kind: str,
    body: Mapping[str, Any],
    request: Mapping[str, Any],
    bounds: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """Each sentence by which a policy refuses an object; none where it lets the object pass.

    `bounds` are those of the namespace's team, `params` is the parameter object that a binding
    names, `before` what the object was. Where the API server would fail to judge, and so deny, the
    sentence says so.
    """
    more = {"params": dict(params or {})}
    more["namespaceObject"] = {"metadata": {"annotations": as_annotations(bounds or {})}}
    yield from refusals_by(policy(kind)["spec"], body, request, before, more)


def refusals_by(
    spec: Mapping[str, Any],
    body: Mapping[str, Any] | None,
    request: Mapping[str, Any],
    before: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """As `refusals`, of the spec of a policy that has its bounds written in; no `body` is a
    deletion. `more` are other inputs of expressions.
    """
    inputs: dict[str, Any] = {
        "object": None if body is None else dict(body),
        "oldObject": None if before is None else dict(before),
        "request": dict(request),
        "variables": {},
        **(more or {}),
    }
    variables = {each["name"]: each["expression"] for each in spec.get("variables") or []}
    for condition in spec.get("matchConditions") or []:
        if _value(condition["expression"], variables, inputs) is False:
            return
    for rule in spec["validations"]:
        if _value(rule["expression"], variables, inputs) is not True:
            yield str(_value(rule["messageExpression"], variables, inputs))


class _Failure(str):
    """Why an expression has no value."""

    __slots__ = ()


@cache
def _environment() -> Any:
    inputs = dict.fromkeys(_INPUTS, cel.Type.DYN)
    return cel.NewEnv(variables=inputs, extensions=[ExtOptional(), ExtStrings()])


@cache
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)


def _value(expression: str, variables: Mapping[str, str], inputs: Mapping[str, Any]) -> Any:
    """The value of an expression. Variables are computed when the first one names them, as far as
    they can be: an object of another kind may lack what a variable is about.
    """
    known = inputs["variables"]
    for name in _NAMED.findall(expression):
        if name not in known:
            found = _value(variables[name], variables, inputs)
            if not isinstance(found, _Failure):
                known[name] = found
    compiled = _compiled(expression)
    try:
        result = compiled.eval(data=dict(inputs))
        failed = result.type() == cel.Type.ERROR
        value = result.value() if failed else result.plain_value()
    except Exception as error:
        failed, value = True, error
    return _Failure(f"the policy cannot judge it ({value})") if failed else value
