"""What messages of Kubernetes, vCluster and KAI mean: those in events, conditions and statuses.

Tables of `kai_usage` have the meanings by patterns: `messages.yaml`, and `scheduling.yaml` for what
schedulers write. `tenants.yaml` names the rows that a tenant causes.
"""

from collections.abc import Iterable, Iterator, Mapping
from string import Formatter

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import table
from kai_fleet_cli.doctor.faults import NAME, NAMESPACE, Affected, Fault, Why
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_policies.finding import Command, Level
from kai_usage.messages import Meaning, Row
from kai_usage.scheduling import (
    NO_SURROUNDINGS,
    PodSurroundings,
    is_of_nodes,
    meanings_of,
    names_objects,
)

NVIDIA_CLASS = "nvidia"  # the RuntimeClass of messages that name none
_QUOTED_CHARACTERS = 240  # of a message that a cause quotes
_TENANT_CAUSES = frozenset(table("tenants", __package__))


def explain(
    subject: Affected,
    texts: Iterable[str],
    about: PodSurroundings = NO_SURROUNDINGS,
) -> Fault | None:
    """Return a fault with the meaning of the first message that a table knows; None without one.
    Raises one of MALFORMED for malformed objects in `about`.

    Args:
        subject: The object that the messages are about.
        texts: The messages in order of priority.
        about: The objects around a pod that has no node; NO_SURROUNDINGS for any other object.
    """
    meaning = next(meanings_of(texts, "operator", about), None)
    return fault_of(subject, meaning) if meaning else None


def reason(cluster: Cluster, *objects: KubeObject) -> Why:
    """Return why objects are not ready, by the first of their messages that a table knows.

    Their order is the priority. Without such a message the cause quotes 240 characters of the first
    one, or says that there is none or that the events were not read, and the fix is empty. Raises
    one of MALFORMED, but no UnreadError.
    """
    if unread := cluster.unread("events", "bound"):
        texts = list[str]()
        for item in objects:
            texts.extend(filter(None, item.messages))
        fallback = f"why is not known: {unread}"
    else:
        texts = cluster.messages_of(*objects)
        fallback = "nothing gives a reason"
    waiting_pod = next((item for item in objects if item.unscheduled), None)
    about = NO_SURROUNDINGS if waiting_pod is None else cluster.around(waiting_pod, cluster, {})
    known = explain(Affected(cluster, "", ""), texts, about)
    if known is not None:
        return Why(known.cause, known.fix, known.effect_of)
    first_message = next(iter(texts), fallback)
    return Why(first_message[:_QUOTED_CHARACTERS])


def fault_of(subject: Affected, meaning: Meaning, check: str = "") -> Fault:
    """Return the fault that a row of a table describes, with its values.

    The fault's level is `info` if `tenants.yaml` names the row, else `mandatory`. A row of
    `scheduling.yaml` about some of the nodes is `info`, too, if the objects around the pod were not
    read: the tenant may have caused it. Then the cause says so, and a fix that names nodes or
    volumes is left out.

    The key leaves out what differs from pod to pod: the quoted message, in which a scheduler counts
    nodes, and what the pod asks for.

    Args:
        subject: The object that has the fault.
        meaning: The row and its values.
        check: Name of the check; "" for the name of the row.
    """
    row, values = meaning
    level = Level.INFO if row.name in _TENANT_CAUSES else Level.MANDATORY
    cause = " ".join(meaning.cause.split())
    fix = tuple(_filled(subject.cluster, row, values))
    key = row.cause.format_map({**values, "text": "", "asks": ""})
    unread = values.get("unread")
    if unread and is_of_nodes(row):
        level = Level.INFO
        cause = f"{cause.rstrip('.')}. What its nodes and volumes say is not known: {unread}"
        fix = () if names_objects(row) else fix
        key += str(unread)
    return subject.at_level(
        level,
        cause,
        *fix,
        check=check or row.name,
        key=key,
        effect_of=_causing_subject(meaning),
    )


def _filled(cluster: Cluster, row: Row, values: Mapping[str, object]) -> Iterator[str | Command]:
    """Yield the parts of a row's fix with the values of its placeholders.

    Besides `values` these are keys of the stack file, commands of the cluster, and `{0}` for the
    first of the row's own commands. Raises KeyError for another placeholder.
    """
    places: dict[str, object] = {
        "cluster": cluster.name,
        "namespace": NAMESPACE,
        "name": NAME,
        "key": cluster.desired.key,
        "queues": cluster.desired.queues_key,
        "kubectl": cluster.kubectl,
        "host": cluster.host_kubectl,
        "update": cluster.update_command,
        "apply": cluster.apply_command,
        **values,
    }
    for number, command in enumerate(row.commands):
        places[str(number)] = Command(command.format_map(places))
    for literal, name, specification, _ in Formatter().parse(row.fix):
        yield literal
        if name is not None:
            part = places[name]
            yield part if isinstance(part, Command) else format(part, specification or "")


def _causing_subject(meaning: Meaning) -> str:
    """Return the subject of the fault that causes what a message reports; "" if there is none."""
    if meaning.row.name != "runtime-class":
        return ""
    return f"RuntimeClass {meaning.values['what'] or NVIDIA_CLASS}"
