"""Refuse to declare cluster-scoped objects that another program has made.

Pulumi's Kubernetes plugin before v4.29 silently takes over an object that exists, and deletes it
with the stack that took it over. Later releases refuse, but only in the update.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

import pulumi
from pulumi import ComponentResource
from pulumi.runtime import invoke, is_dry_run

from kai_fleet.names import EXISTING, NAMESPACE
from kai_fleet.ownership import deployed

# A function of the engine: the outputs of a resource of this run; for a provider, its inputs.
_READ_RESOURCE = "pulumi:pulumi:getResource"


class HostObject(NamedTuple):
    """An object on the host that a component declares.

    Args:
        type: the resource's type in Pulumi.
        resource: the resource's name in the stack.
        path: the object's path in the host's API.
    """

    type: str
    resource: str
    path: str

    @property
    def subject(self) -> str:
        """Kind and name in words: `Namespace team-ml`."""
        kind = self.type.rpartition(":")[2]
        name = self.path.rpartition("/")[2]
        return f"{kind} {name}"


class Answer(TypedDict, total=False):
    """What the package's provider says about an object on the host, as its `read_existing`.

    Without keys: only the update knows the cluster.
    """

    there: bool
    """Whether the object exists."""
    problem: str
    """Why the host could not be asked."""


def refuse_others(
    component: ComponentResource,
    name: str,
    objects: Sequence[HostObject],
    instead: str,
    *,
    together: bool = False,
) -> None:
    """Refuse to go on if one of the objects is on the host and not in this stack's state.

    The first object that decides ends the search. If the host cannot be read, a preview warns, and
    looks no further. If only the update knows the host, nothing is refused. A state that is not
    `readable` counts as empty, so that objects of this stack are refused, too.

    Args:
        name: type and name of the component, for messages: `HostGuards guards`.
        instead: what to write, as an imperative.
        together: one program always makes all of the objects, so if this stack has made one of
            them, the others are its own, too.

    Raises:
        pulumi.RunError: an object is there; or, in an update, the host cannot be read.
    """
    state = deployed.read()
    new = [each for each in objects if not state.has(each.type, each.resource)]
    if together and len(new) < len(objects):
        return
    for host_object in new:
        answer = _ask(component, host_object.path)
        if answer.get("there"):
            raise pulumi.RunError(
                f"{name}: {host_object.subject} is in the cluster already, and this stack has not"
                f" made it: another program or stack has. Nothing was made. {instead}"
            )
        if problem := answer.get("problem"):
            _undecided(name, host_object, problem)
            return


def require(
    component: ComponentResource, name: str, objects: Sequence[HostObject], instead: str
) -> None:
    """Refuse to go on if one of the objects is not on the host; the arguments are those of
    `refuse_others`. The state does not count. If only the update knows the host, none is missing.

    Raises:
        pulumi.RunError: an object is missing; or, in an update, the host cannot be read. A preview
            warns of that, and looks no further.
    """
    for host_object in objects:
        answer = _ask(component, host_object.path)
        if problem := answer.get("problem"):
            _undecided(name, host_object, problem)
            return
        if answer.get("there") is False:
            raise pulumi.RunError(
                f"{name}: {host_object.subject} is not in the cluster, and nothing here declares"
                f" it. Nothing was made. {instead}"
            )


def _undecided(name: str, host_object: HostObject, problem: str) -> None:
    """Warn in a preview and refuse in an update, because the host could not be read.

    Args:
        name: type and name of the component, as in `refuse_others`.
        problem: why the host could not be asked, as in `Answer`.

    Raises:
        pulumi.RunError: in an update.
    """
    subject = host_object.subject
    cause = f"{name}: cannot decide whether another program has made {subject}: {problem}"
    if not is_dry_run():
        raise pulumi.RunError(
            f"{cause}. Nothing was made. See that kubectl reaches the cluster and that you may get"
            " it, then run the same again"
        )
    pulumi.log.warn(f"{cause}. The update asks again, and is refused where it cannot tell")


def _ask(component: ComponentResource, path: str) -> Answer:
    """Ask the package's provider about the object at this path of the host's API.

    Every error is a `problem` in the answer, which is empty if only the update knows the host.
    """
    options = pulumi.InvokeOptions(parent=component)
    try:
        query = {"path": path, **_access(component)}
        answer: Answer | None = invoke(EXISTING, query, options).value
    except Exception as error:
        return {"problem": str(error)}
    return answer or {}


def _access(component: ComponentResource) -> dict[str, object]:
    """How to reach the host: as the component's Kubernetes provider does.

    It is `kubeconfig` and `context`; empty texts are the user's defaults. Without a provider as the
    configuration `kubernetes:kubeconfig` and `kubernetes:context` say. Raises as `_content` does,
    and errors of the engine.
    """
    settings: pulumi.Config | Mapping[str, str] = pulumi.Config("kubernetes")
    provider = component.get_provider(NAMESPACE)
    if provider is not None:
        resource = invoke(_READ_RESOURCE, {"urn": provider.urn}).value or {}
        settings = resource.get("state") or {}
    return {
        "kubeconfig": _content(settings.get("kubeconfig")),
        "context": settings.get("context") or "",
    }


def _content(kubeconfig: object) -> object:
    """The content of a provider's kubeconfig.

    "" for the user's default one, which Pulumi's Python SDK writes as the path in $KUBECONFIG.
    Another path, a line that does not begin with `{`, is read: this raises OSError, and ValueError
    for a file that is not UTF-8. A value that is no text, such as an Output, is returned as it is.
    """
    if not kubeconfig:
        return ""
    if not isinstance(kubeconfig, str):
        return kubeconfig
    if kubeconfig == os.environ.get("KUBECONFIG"):
        return ""
    is_path = "\n" not in kubeconfig and not kubeconfig.lstrip().startswith("{")
    if is_path:
        return Path(kubeconfig).read_text(encoding="utf-8")
    return kubeconfig
