"""Pods that could not be created, as admission denied them, by events of what creates them."""

import shlex
from dataclasses import dataclass

from kai_usage.creators import lacks_pods
from kai_usage.keys import RESERVED
from kai_usage.objects import Object, controller_of, involved_in, last_seen
from kai_usage.scheduling import meanings_of
from kai_usage.words import short_line
from kubectl_fleet.cluster import Snapshot
from kubectl_fleet.messages import Reason, in_sentences

_MAX_EVENT_AGE_SECONDS = 900.0
# The last two are events of KubeRay about a RayCluster.
_EVENT_REASONS = ("FailedCreate", "FailedToCreateHeadPod", "FailedToCreateWorkerPod")
_PLURALS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "Job": "jobs"}


@dataclass(frozen=True)
class Denial:
    """An object whose pods are denied: why, what to do, and since when.

    `kind` and `name` are those of the object that a person wrote, such as a Deployment, else of the
    one that the event is about. A command in `fix` has them quoted as for a shell. `since` is the
    first time stamp of its newest such event, else the last one; "" without any.
    """

    kind: str
    name: str
    namespace: str
    cause: str
    fix: str
    since: str


def denials_in(snapshot: Snapshot) -> list[Denial]:
    """The objects that could not create their pods and still lack them, the oldest first.

    Only those of users in namespaces that are shown. Each is there once, by its newest event. Empty
    if events were not read. Raises LookupError, TypeError, AttributeError or ValueError for a
    malformed object.
    """
    denials: dict[tuple[str, str, str], Denial] = {}
    for event in snapshot.all("events"):  # newest first
        denial = _denial(snapshot, event)
        if denial is not None:
            denials.setdefault((denial.kind, denial.namespace, denial.name), denial)
    return sorted(
        denials.values(), key=lambda denial: (denial.since, denial.namespace, denial.name)
    )


def _denial(snapshot: Snapshot, event: Object) -> Denial | None:
    """The denial that an event reports; None for other events, and if it is over.

    It names the controller of the object that the event is about, if it has one. None as well for
    events about pods, and in namespaces that are not shown or not a user's. A message that no table
    knows is the cause itself, and the fix a command that describes the object of the event.
    """
    kind, namespace, name = involved_in(event)
    if event.get("reason") not in _EVENT_REASONS or kind == "Pod":
        return None
    if namespace in RESERVED or not snapshot.shows(namespace):
        return None
    creator = snapshot.named(_PLURALS.get(kind, ""), name, namespace)
    if _is_over(snapshot, kind, creator, event):
        return None
    text = event.get("message") or "its event does not say why"
    words = ["-n", namespace, "describe", kind.lower(), name]
    look = f"look with: `{snapshot.kubectl} {shlex.join(words)}`"
    reason = Reason(short_line(text), short_line(look))
    for known in meanings_of([text], "user"):
        reason = in_sentences(known, kubectl=snapshot.kubectl)
    if creator is not None:
        controller = controller_of(creator)  # only one step up
        kind = controller.get("kind", kind)
        name = controller.get("name", name)
    since = event.get("firstTimestamp") or last_seen(event)
    return Denial(
        kind=kind,
        name=name,
        namespace=namespace,
        cause=reason.cause,
        fix=reason.fix,
        since=since,
    )


def _is_over(
    snapshot: Snapshot,
    kind: str,
    creator: Object | None,
    event: Object,
) -> bool:
    """Whether the creator is gone, has ended, is suspended, or has all its pods.

    If its kind cannot be listed, or is none of those that are read, whether the event is older than
    15 minutes.
    """
    if _PLURALS.get(kind) not in snapshot.objects:
        return snapshot.seconds_since(last_seen(event)) > _MAX_EVENT_AGE_SECONDS
    return creator is None or not lacks_pods(creator)
