"""What a KAI on the host counts by, looks up in all namespaces, and leaves behind (T2, T9, T13)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.attacks.attempts.attempt import STACKS, Attempt
from tests.attacks.objects import (
    Object,
    config_map,
    container,
    fraction,
    of_queue,
    pod,
    scaled_down,
)

ON_KAI_HOST = ("nlp", "sim")
_LEFT = "leave the others to KAI"
# Which KAI's binder fills, and leaves when their pod ends.
_OF_KAI = ("train-a-abcdefg-shared-gpu-0", "train-a-abcdefg-shared-gpu-i1-evar")
_DROP = "drop it from envFrom"
_AT = "2099-01-01T00:00:00Z"
# What it does for a pod, and where that is written: labels or annotations.
_WRITTEN = {
    "the name of another team's PodGroup": ("annotations", "pod-group-name", "pg-train-0f1e"),
    "a subgroup that its PodGroup has not": ("labels", "kai.scheduler/subgroup-name", "x"),
    "a start that is to come, until which nobody reclaims its GPUs": (
        *("annotations", "kai.scheduler/last-start-timestamp", _AT),
    ),
    "a gang that was broken long ago": (
        *("annotations", "kai.scheduler/stale-podgroup-timestamp", _AT),
    ),
    "a place on the node's memory": (
        *("annotations", "kai.scheduler/numa-placement-observed", "0"),
    ),
    "what a version to come counts by": ("labels", "kai.scheduler/weightless", "true"),
    "a reservation, whose GPU is on no node": ("labels", "app", "kai-resource-reservation"),
    "a pod for the autoscaler": ("labels", "app", "scaling-pod"),
}
_TEMPLATES = {
    "a place on the GPU of others": ("labels", "runai-gpu-group", "0f1e2d3c"),
    "no place in its queue": ("labels", "kai.scheduler/background", "true"),
    "what KAI says that it gave": ("annotations", "received-resource-type", "Fraction"),
    "another's PodGroup": ("annotations", "pod-group-name", "pg-train-0f1e"),
}


def _with(body: Object, where: str, key: str, value: str) -> Object:
    body["metadata"].setdefault(where, {})[key] = value
    return body


def _made(name: str, *written: str) -> Attempt:
    return Attempt(f"{name}, by a pod", ON_KAI_HOST, lambda t: _with(pod(t), *written), _LEFT)


def _later(name: str, where: str, key: str, value: str) -> Attempt:
    change = ("", {"metadata": {where: {key: value}}})
    return Attempt(f"{name}, once it runs", ("nlp",), fraction, _LEFT, change=change)


def _by_template(name: str, where: str, key: str, value: str) -> Iterator[Attempt]:
    """What a team's own stack makes pods of; no other account of a team makes it."""
    change = ("", {"spec": {"template": {"metadata": {where: {key: value}}}}})
    for kind in ("Deployment", "StatefulSet"):
        plain = partial(scaled_down, kind)

        def written(team: str, plain: Any = plain) -> Object:
            whole: Object = plain(team)
            _with(whole["spec"]["template"], where, key, value)
            return whole

        for when, body, how in (("", written, None), (", later", plain, change)):
            name_of_it = f"{name}, by a {kind}{when}"
            yield Attempt(name_of_it, ("audio",), body, _LEFT, change=how, who=STACKS[:1])


def _taking(name: str) -> Object:
    return {"envFrom": [{"configMapRef": {"name": name}}]}


def _queued(team: str) -> Object:
    return of_queue("nlp") if team == "nlp" else {}


def _left_behind(name: str) -> Iterator[Attempt]:
    """By every kind of container of teams whose GPUs are not their own nodes'."""
    teams = ("nlp", "dev")
    for what, body in (
        ("", lambda t: pod(t, container(gpus=1, **_taking(name)), **_queued(t))),
        (
            ", in an init container",
            lambda t: pod(t, initContainers=[container("i", **_taking(name))]),
        ),
    ):
        yield Attempt(f"the GPU of a pod that ended, by {name}{what}", teams, body, _DROP)
    debugging = [container("debug", **_taking(name))]
    yield Attempt(
        f"the GPU of a pod that ended, by {name}, in a debugging container",
        teams,
        lambda t: pod(t),
        _DROP,
        change=("ephemeralcontainers", {"spec": {"ephemeralContainers": debugging}}),
    )


def _ranked(body: Object) -> Object:
    return _with(body, "labels", "priorityClassName", "urgent")


def _spark(team: str, name: str) -> Object:
    """As Spark labels its driver and its executors, of a name that somebody chose."""
    found = pod(team, container(gpus=1), **of_queue("nlp"))
    found["metadata"]["labels"] |= {"spark-app-name": "x", "spark-app-selector": name}
    return found


_NAMED = "leave it to Spark, or write nlp."
_PRIORITIES = "isolation.priorityClasses"
COUNTED = [
    *(_made(name, *written) for name, written in _WRITTEN.items()),
    *(_later(name, *written) for name, written in _WRITTEN.items()),
    *(each for name, found in _TEMPLATES.items() for each in _by_template(name, *found)),
    Attempt(
        "no PodGroup, once it runs",
        ("nlp",),
        lambda t: _with(fraction(t), "annotations", "pod-group-name", "pg-train-0f1e"),
        _LEFT,
        change=("", {"metadata": {"annotations": {"pod-group-name": None}}}),
    ),
    Attempt(
        "a start that is to come, by what owns the pod",
        ON_KAI_HOST,
        lambda _: _with(
            config_map(a="b"), "annotations", "kai.scheduler/last-start-timestamp", _AT
        ),
        _LEFT,
    ),
    Attempt(
        "a start that is to come, by what owns the pod, later",
        ON_KAI_HOST,
        lambda _: config_map(a="b"),
        _LEFT,
        change=("", {"metadata": {"annotations": {"kai.scheduler/last-start-timestamp": _AT}}}),
    ),
    Attempt(
        "the priority of others by a label",
        ("nlp",),
        lambda t: _ranked(pod(t, container(gpus=1), **of_queue("nlp"))),
        _PRIORITIES,
    ),
    Attempt(
        "the priority of others by what owns the pod",
        ("nlp",),
        lambda _: _ranked(config_map(a="b")),
        _PRIORITIES,
    ),
    *(
        Attempt(
            f"the PodGroup {name}, as Spark's", ("nlp",), lambda t, n=name: _spark(t, n), _NAMED
        )
        for name in ("pg-train-0f1e", "spark-0f1e2d3c", "nlp-0f1e2d3c", "audio.0f1e2d3c")
    ),
    Attempt(
        "another's PodGroup, as Spark's, later",
        ("nlp",),
        lambda t: _spark(t, "nlp.mine"),
        _NAMED,
        change=("", {"metadata": {"labels": {"spark-app-selector": "pg-train-0f1e"}}}),
    ),
    *(each for name in _OF_KAI for each in _left_behind(name)),
    Attempt(
        "the GPU of a share by envFrom in a second container",
        ("nlp",),
        lambda t: fraction(t, container("two", **_taking("train-a-abcdefg-shared-gpu-0-evar"))),
        _DROP,
    ),
    Attempt(
        "the GPU of another share by envFrom in its own container",
        ("nlp",),
        lambda t: _also(fraction(t), _taking("train-b-abcdefg-shared-gpu-0-evar")),
        _DROP,
    ),
]


def _also(body: Object, more: Object) -> Object:
    body["spec"]["containers"][0]["envFrom"] += more["envFrom"]
    return body
