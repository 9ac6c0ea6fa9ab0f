"""Refuse to declare cluster-scoped objects that another program has made.

Releases of Pulumi's Kubernetes plugin before v4.29 take over an object that exists, without a word,
and delete it with the stack that took it. Later ones refuse, but only in the update.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pulumi
from pulumi.runtime import invoke, is_dry_run

from kai_fleet import deployed
from kai_fleet.names import EXISTING, NAMESPACE

# A function of the engine: the outputs of a resource of this run; of a provider its inputs.
_READ_RESOURCE: Final = "pulumi:pulumi:getResource"


class HostObject(NamedTuple):
    """An object that a component declares.

    Args:
        type: Pulumi's type of it.
        resource: name of its resource in the stack.
        path: of the API.
    """

    type: str
    resource: str
    path: str

    @property
    def subject(self) -> str:
        """Kind and name in words: `Namespace team-ml`."""
        return f"{self.type.rpartition(':')[2]} {self.path.rpartition('/')[2]}"


def refuse_others(
    component: pulumi.ComponentResource,
    name: str,
    objects: Sequence[HostObject],
    instead: str,
    *,
    together: bool = False,
) -> None:
    """Refuse to go on where one of these objects is on the host and not in this stack's state.

    Args:
        name: type and name of the component, for messages: `HostGuards guards`.
        instead: what to write, as an imperative.
        together: whoever has one of them has them all.

    Raises:
        pulumi.RunError: one is there; in an update also where the host cannot be read. A preview
            warns of that.
    """
    known = deployed.read()
    new = [each for each in objects if not known.has(each.type, each.resource)]
    if together and len(new) < len(objects):
        return
    for each in new:
        answer = _read(component, each.path)
        if answer.get("there"):
            raise pulumi.RunError(
                f"{name}: {each.subject} is in the cluster already, and this stack has not made it:"
                f" another program or stack has. Nothing was made. {instead}"
            )
        if problem := answer.get("problem"):
            _undecided(name, each, str(problem))
            return


def require(
    component: pulumi.ComponentResource, name: str, objects: Sequence[HostObject], instead: str
) -> None:
    """Refuse to go on where one of these objects is not on the host; arguments and errors as of
    `refuse_others`.
    """
    for each in objects:
        answer = _read(component, each.path)
        if problem := answer.get("problem"):
            _undecided(name, each, str(problem))
            return
        if answer.get("there") is False:
            raise pulumi.RunError(
                f"{name}: {each.subject} is not in the cluster, and nothing here declares it."
                f" Nothing was made. {instead}"
            )


def _undecided(name: str, item: HostObject, problem: str) -> None:
    cause = f"{name}: cannot decide whether another program has made {item.subject}: {problem}"
    if not is_dry_run():
        raise pulumi.RunError(
            f"{cause}. Nothing was made. See that kubectl reaches the cluster and that you may get"
            " it, then run the same again"
        )
    pulumi.log.warn(f"{cause}. The update asks again, and is refused where it cannot tell")


def _read(component: pulumi.ComponentResource, path: str) -> Mapping[str, Any]:
    """What the package's provider says of an object, as `read_existing` of the provider; empty
    where only the update knows the cluster.
    """
    options = pulumi.InvokeOptions(parent=component)
    try:
        answer: Any = invoke(EXISTING, {"path": path, **_access(component)}, options).value
    except Exception as error:
        return {"problem": str(error)}
    return answer or {}


def _access(component: pulumi.ComponentResource) -> Mapping[str, Any]:
    """`kubeconfig` and `context` of the Kubernetes provider of a component; empty texts stand for
    the user's default ones.
    """
    provider, config = component.get_provider(NAMESPACE), pulumi.Config("kubernetes")
    if provider is None:
        return {"kubeconfig": _content(config.get("kubeconfig")), "context": config.get("context")}
    found: Any = invoke(_READ_RESOURCE, {"urn": provider.urn}).value or {}
    state = found.get("state") or {}
    return {"kubeconfig": _content(state.get("kubeconfig")), "context": state.get("context") or ""}


def _content(kubeconfig: Any) -> Any:
    """The content of a provider's kubeconfig, which may be a path: of $KUBECONFIG, in Python by
    default; "" for that.
    """
    if not isinstance(kubeconfig, str) or kubeconfig in ("", os.environ.get("KUBECONFIG")):
        return kubeconfig if kubeconfig and not isinstance(kubeconfig, str) else ""
    is_path = "\n" not in kubeconfig and not kubeconfig.lstrip().startswith("{")
    return Path(kubeconfig).read_text(encoding="utf-8") if is_path else kubeconfig
