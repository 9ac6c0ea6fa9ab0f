"""The expressions (CEL) by which an API server judges a team's pods, and templates of pods.

They say at admission what the rules `workload-leaf-queue`, `-scheduler`, `-known-keys`,
`-gpu-request`, `-gpu-sharing` and `namespace-reserved` say at preview, in the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kai_fleet.components.kai.keys import (
    DEVICES,
    FRACTION,
    GPU_RESOURCES,
    MEMORY,
    MPS,
    POD_GROUP,
    QUEUE_LABEL,
    RESERVED,
    SCHEDULER,
    look_alike_pattern,
    meant,
)
from kai_fleet.components.wording import listed

Expression = dict[str, str]

_FLOAT: Final = "^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$"
_COUNT: Final = "^0*[1-9][0-9]{0,17}$"
_SHARE_KEYS: Final = (FRACTION, MEMORY, DEVICES)
# A denial is read by a person: of many queues it names the first.
_QUEUES_IN_A_MESSAGE: Final = 12


def text(value: str) -> str:
    """A string literal of CEL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def names(values: Iterable[str]) -> str:
    """A list literal of CEL."""
    return f"[{', '.join(text(value) for value in values)}]"


def _table(pairs: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{text(key)}: {text(value)}' for key, value in pairs.items())}}}"


def _placed(key: str) -> str:
    return f"the {'label' if key == QUEUE_LABEL else 'annotation'} {key}"


def _pairs(of: str, place: str) -> str:
    return f"{of}.?metadata.?{place}.orValue({{}})"


def _looks_alike(key: str) -> str:
    return f"{key}.matches({text(look_alike_pattern())}) && {key} != {text(QUEUE_LABEL)}"


# Optional steps everywhere: an expression that fails would deny a pod that is nothing to KAI.
def _scheduler(of: str) -> str:
    return f"{of}.?spec.?schedulerName"


def _kai(of: str) -> str:
    return f"{_scheduler(of)}.orValue('') == {text(SCHEDULER)}"


# What makes pods, by API group: whoever applies it is warned, for its pods are going to be judged.
TEMPLATES: Final[Mapping[str, Sequence[str]]] = {
    "apps": ["deployments", "statefulsets", "replicasets"],
    "batch": ["jobs", "cronjobs"],
}
_IS_POD: Final = "request.resource.resource == 'pods'"
# Where the pods stand in what is sent: it is one, or a Deployment, Job, CronJob or the like that
# makes them. `dyn`: types are checked against each kind, and none has all of these fields.
_OF: Final = (
    f"({_IS_POD} ? dyn(object) : dyn(object).?spec.?template"
    ".or(dyn(object).?spec.?jobTemplate.?spec.?template).orValue({}))"
)
# The queue of a pod that names a PodGroup stands there (KAI from v0.15).
_IN_POD_GROUP: Final = f"variables.annotations[?{text(POD_GROUP)}].orValue('') != ''"
_NAMED: Final = (
    "object.metadata.?name.orValue(object.metadata.?generateName.orValue('') + '…')"
    " + ' in namespace ' + request.namespace"
)
_KEYS: Final = (QUEUE_LABEL, *_SHARE_KEYS, MPS)


def of_team(queue: str, queues: str, prefix: str | None, foreign: Sequence[str] = ()) -> str:
    """Whether a queue is one of a team's `queues` (a list in CEL), or begins with its `prefix` and
    is none of, nor below, the `foreign` ones, which only begin like it.
    """
    found = f"{queue} in {queues}"
    if prefix:
        own = f"{queue}.startsWith({text(prefix)})"
        if foreign:
            own += f" && !{names(foreign)}.exists(q, {queue} == q || {queue}.startsWith(q + '-'))"
        found = f"({found} || ({own}))"
    return found


def _about_kai() -> Expression:
    """Which pods are judged at all: what has to do with KAI."""
    labels, annotations = _pairs("it", "labels"), _pairs("it", "annotations")
    about = " || ".join(
        (
            _kai("it"),
            f"{text(QUEUE_LABEL)} in {labels}",
            f"{annotations}.exists(k, k in {names(_SHARE_KEYS)})",
            f"[{labels}, {annotations}].exists(m, m.exists(k, {_looks_alike('k')}))",
        )
    )
    # A condition has no variables; so `it` is bound, and the text is there once.
    return {"name": "about-kai", "expression": f"[{_OF}].exists(it, {about})"}


def match_conditions() -> list[Expression]:
    """Pods that have to do with KAI, when they are made or that changes; and what makes such pods,
    unless a controller made it, such as the Job of a CronJob.

    KAI writes labels and annotations of its own on pods; those never count as a change, so a pod
    that is bound is let be whatever has become of its queue.
    """
    new, old = "dyn(object)", "dyn(oldObject)"
    # Each place in both directions: what is there now, and what was there before.
    both = [
        f"[{_pairs(of, key)}, {_pairs(than, key)}]"
        for key in ("labels", "annotations")
        for of, than in ((new, old), (old, new))
    ]
    changed = (
        f"[{', '.join(both)}].exists(p, p[0].exists(k,"
        f" (k in {names(_KEYS)} || ({_looks_alike('k')})) && p[0][?k] != p[1][?k]))"
    )
    return [
        _about_kai(),
        {
            "name": "new-or-changed",
            "expression": f"!({_IS_POD}) ? !has(object.metadata.ownerReferences)"
            f" : (request.operation == 'CREATE' || {changed}"
            f" || {_scheduler(new)} != {_scheduler(old)})",
        },
    ]


def variables(queues: Sequence[str], *, denied: bool = True) -> list[Expression]:
    """What the validations share; each is computed once, and only where it is asked for.

    `denied`: what happens to the pods, told of what makes them.
    """
    become = "denied" if denied else "warned about"
    asked = " || ".join(
        f"{text(gpu)} in c.?resources.?{part}.orValue({{}})"
        for gpu in GPU_RESOURCES
        for part in ("limits", "requests")
    )
    found = {
        "of": _OF,
        "kai": _kai("variables.of"),
        "labels": _pairs("variables.of", "labels"),
        "annotations": _pairs("variables.of", "annotations"),
        "queue": f"variables.labels[?{text(QUEUE_LABEL)}].orValue('')",
        "queues": names(queues),
        "meant": _table({name: _placed(right) for name, right in meant().items()}),
        "wrong": f"[variables.labels, variables.annotations].map(m, m.filter(k,"
        f" {_looks_alike('k')})).filter(found, size(found) > 0)",
        "fraction": f"variables.annotations[?{text(FRACTION)}].orValue('')",
        "memory": f"variables.annotations[?{text(MEMORY)}].orValue('')",
        "devices": f"variables.annotations[?{text(DEVICES)}].orValue('')",
        "share": f"{text(FRACTION)} in variables.annotations"
        f" || {text(MEMORY)} in variables.annotations",
        "scheduler": f"{_scheduler('variables.of')}.orValue('not set')",
        "whole": "(variables.of.?spec.?containers.orValue([])"
        f" + variables.of.?spec.?initContainers.orValue([])).filter(c, {asked})",
        "pod": f"({_IS_POD} ? 'pod ' : 'each pod of ' + request.kind.kind + ' ') + {_NAMED}"
        f" + ({_IS_POD} ? '' : ' will be {become}: it')",
    }
    return [{"name": name, "expression": expression} for name, expression in found.items()]


def validations(
    team: str,
    queues: Sequence[str],
    gpu_sharing: bool,
    prefix: str | None = None,
    *,
    foreign: Sequence[str] = (),
    pod_groups: bool = False,
) -> list[dict[str, Any]]:
    """What must hold, with the sentence for a pod for which it does not; the first one is told.

    `pod_groups`: a pod that names a PodGroup needs no queue.
    """
    grouped = _IN_POD_GROUP if pod_groups else "false"
    allowed = listed(list(queues), limit=_QUEUES_IN_A_MESSAGE) or "none: the team has no leaf queue"
    if prefix:
        allowed += f", or a queue named {prefix}…"
    write = text(f"; write the label {QUEUE_LABEL}: {allowed}")
    found = [
        (
            f"!(request.namespace in {names(sorted(RESERVED))})",
            "' asks for KAI where only the platform runs;"
            " use a namespace of the team, for example team-a'",
        ),
        (
            "size(variables.wrong) == 0",
            "' has ' + variables.wrong[0][0] + ', which KAI does not read; write '"
            " + variables.meant[variables.wrong[0][0].replace('_', '-')"
            ".substring(variables.wrong[0][0].lastIndexOf('/') + 1)]",
        ),
        (
            f"variables.kai || !({text(QUEUE_LABEL)} in variables.labels || variables.share"
            f" || {text(DEVICES)} in variables.annotations)",
            "' names a queue or a share of a GPU, but its schedulerName is '"
            f" + variables.scheduler + ', so KAI never sees it; write schedulerName: {SCHEDULER}'",
        ),
        (
            f"{text(QUEUE_LABEL)} in variables.labels || {grouped}",
            f"' asks for KAI and names no queue on the pod itself' + {write}",
        ),
        (
            f"!({text(QUEUE_LABEL)} in variables.labels) || "
            + of_team("variables.queue", "variables.queues", prefix, foreign),
            f"' names queue ' + variables.queue + ', which is no leaf queue of team {team}'"
            f" + {write}",
        ),
        *_gpu(gpu_sharing),
    ]
    return [
        {
            "expression": expression,
            "messageExpression": f"variables.pod + {message}",
            "reason": "Forbidden",
        }
        for expression, message in found
    ]


def _gpu(sharing: bool) -> list[tuple[str, str]]:
    found = [
        (
            f"!({text(FRACTION)} in variables.annotations)"
            f" || (variables.fraction.matches({text(_FLOAT)})"
            " && double(variables.fraction) > 0.0 && double(variables.fraction) < 1.0)",
            f"' has {FRACTION}: \"' + variables.fraction"
            f" + '\", which is not a number between 0 and 1; write, for example, {FRACTION}:"
            ' "0.5"\'',
        ),
        (
            f"!({text(MEMORY)} in variables.annotations)"
            f" || variables.memory.matches({text(_COUNT)})",
            f"' has {MEMORY}: \"' + variables.memory + '\"; write a positive whole number of MiB,"
            f' for example {MEMORY}: "2000"\'',
        ),
        (
            f"!({text(FRACTION)} in variables.annotations && {text(MEMORY)} in"
            " variables.annotations)",
            f"' has both {FRACTION} and {MEMORY}; write only one of them'",
        ),
        (
            "!variables.share || size(variables.whole) == 0",
            "' asks for a share of a GPU and, in container ' + variables.whole[0].name"
            " + ', for whole GPUs; drop one of the two'",
        ),
        (
            f"!({text(DEVICES)} in variables.annotations) || variables.share",
            f'\' has {DEVICES} alone; add {FRACTION}, for example {FRACTION}: "0.5", or ask for'
            " whole GPUs'",
        ),
        (
            f"!({text(DEVICES)} in variables.annotations)"
            f" || variables.devices.matches({text(_COUNT)})",
            f"' has {DEVICES}: \"' + variables.devices"
            ' + \'"; write a positive whole number such as "2"\'',
        ),
        (
            f"variables.annotations[?{text(MPS)}].orValue('') != 'true' || variables.share",
            f'\' has mps: "true" without a share of a GPU; add {FRACTION}: "0.5" or drop mps\'',
        ),
    ]
    if not sharing:
        found.insert(
            0,
            (
                "!variables.share",
                "' asks for a share of a GPU, but GPU sharing is off in its KAI; ask for whole"
                " GPUs'",
            ),
        )
    return found
