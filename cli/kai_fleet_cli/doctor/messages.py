"""What messages of Kubernetes, vCluster and KAI mean: those in events, conditions and statuses.

Tables of `kai_usage` have the meanings by patterns: `messages.yaml`, and `scheduling.yaml` for what
schedulers write. `tenants.yaml` names the rows that a tenant causes.
"""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from string import Formatter
from typing import Final

import yaml

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet_cli.doctor.faults import Affected, Fault, Why
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_policies.finding import Command, Fix, Level
from kai_usage import messages, scheduling
from kai_usage.messages import Row
from kai_usage.scheduling import NO_SURROUNDINGS, PodSurroundings

NVIDIA_CLASS: Final = "nvidia"  # the RuntimeClass of messages that name none
_QUOTED_CHARACTERS: Final = 240  # of a message that a cause quotes
_TENANTS_FILE: Final = files(__package__) / "tenants.yaml"
_TENANT_CAUSES: Final = frozenset(yaml.safe_load(_TENANTS_FILE.read_bytes()))


def explain(
    subject: Affected,
    texts: Iterable[str],
    check: str = "",
    about: PodSurroundings = NO_SURROUNDINGS,
) -> Fault | None:
    """Return a fault with the meaning of the first message that a table knows; None without one.
    Raises one of MALFORMED for malformed objects in `about`.

    Of one message a row of `messages.yaml` with advice for operators comes before one of
    `scheduling.yaml`.

    The fault's level is `info` if `tenants.yaml` names the row, else `mandatory`. A row of
    `scheduling.yaml` about some of the nodes is `info`, too, if the objects in `about` were not
    read: the tenant may have caused it. Then the cause says so, and a fix that names nodes or
    volumes is left out.

    Args:
        subject: The object that the messages are about.
        texts: The messages in order of priority.
        check: Name of the check; "" for the name of the row that matches.
        about: The objects around a pod that has no node; NO_SURROUNDINGS for any other object.
    """
    for message in texts:
        if known := messages.row_of_message(message, "operator"):
            return _fault_of_message(subject, check, *known)
        if known := scheduling.row_of_scheduler(message, about):
            return _fault_of_scheduler_message(subject, check, about, *known)
    return None


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
    about = NO_SURROUNDINGS if waiting_pod is None else cluster.around(waiting_pod)
    known = explain(Affected(cluster, "", ""), texts, about=about)
    if known is not None:
        return Why(known.cause, known.fix, known.effect_of)
    first_message = next(iter(texts), fallback)
    return Why(first_message[:_QUOTED_CHARACTERS])


def _fault_of_message(subject: Affected, check: str, row: Row, values: Mapping[str, str]) -> Fault:
    """Return the fault that a row of `messages.yaml` describes, with the values of its message.

    If the cause quotes the message, all faults of the row become one finding.
    """
    return subject.at_level(
        _level(row),
        " ".join(row.cause.format_map(values).split()),
        *_filled(subject.cluster, row, values),
        check=check or row.name,
        key=row.name if "{text}" in row.cause else "",
        effect_of=_causing_subject(row.name, values["what"]),
    )


def _fault_of_scheduler_message(
    subject: Affected,
    check: str,
    about: PodSurroundings,
    row: Row,
    values: Mapping[str, str],
) -> Fault:
    """Return the fault that a row of `scheduling.yaml` describes, with the values of its message.

    The key leaves the quoted message out: the nodes that a scheduler counts differ from pod to pod.
    """
    level = _level(row)
    cause = row.cause.format_map(values)
    fix = _filled(subject.cluster, row, values)
    key = row.cause.format_map({**values, "text": ""})
    if about.unread and scheduling.is_of_nodes(row):
        level = Level.INFO
        cause = f"{cause.rstrip('.')}. What its nodes and volumes say is not known: {about.unread}"
        fix = () if scheduling.names_objects(row) else fix
        key += about.unread
    return subject.at_level(level, cause, *fix, check=check or row.name, key=key)


def _level(row: Row) -> Level:
    """Return `info` for a row that `tenants.yaml` names, else `mandatory`."""
    return Level.INFO if row.name in _TENANT_CAUSES else Level.MANDATORY


def _filled(cluster: Cluster, row: Row, values: Mapping[str, str]) -> Fix:
    """Return the fix of a row, in parts, with the values of its placeholders.

    Besides `values` these are keys of the stack file, commands of the cluster, and `{0}` for the
    first of the row's own commands. Raises KeyError for another placeholder.
    """
    texts = {
        "key": cluster.desired.key,
        "queues": cluster.desired.queues_key,
        "kubectl": cluster.kubectl,
        "host": cluster.host_kubectl,
        **values,
    }
    parts_by_name: dict[str, str | Command] = {
        "update": cluster.update_command,
        "apply": cluster.apply_command,
        **texts,
    }
    for number, command in enumerate(row.commands):
        parts_by_name[str(number)] = Command(command.format_map(texts))
    parts = list[str | Command]()
    for literal, name, *_ in Formatter().parse(row.fix):
        parts.append(literal)
        if name is not None:
            parts.append(parts_by_name[name])
    return tuple(parts)


def _causing_subject(row_name: str, runtime_class: str) -> str:
    """Return the subject of the fault that causes what a message reports; "" if there is none."""
    if row_name != "runtime-class":
        return ""
    return f"RuntimeClass {runtime_class or NVIDIA_CLASS}"
