"""Helm's records and the control plane, written by an account of a team (T15, T16)."""

from tests.attacks.attempts.attempt import EVERY_MODE, Attempt
from tests.attacks.objects import (
    Object,
    config_map,
    control_plane,
    helm_record,
    secret,
    stateful_set,
)

_LEAVE = "leave it to whoever installs the release"
_BY_VALUES = "change it by the values of the vCluster"


def _typed(kind: str) -> Object:
    return {**secret(release="x"), "type": kind}


def _token(account: str) -> Object:
    found = {**secret(x="y"), "type": "kubernetes.io/service-account-token"}
    found["metadata"]["annotations"] = {"kubernetes.io/service-account.name": account}
    return found


def _labelled(body: Object, **labels: str) -> Object:
    body["metadata"]["labels"] = labels
    return body


RELEASES = [
    Attempt("a record of the next revision", EVERY_MODE, lambda t: helm_record(t, 9), _LEAVE),
    Attempt(
        "a record as a ConfigMap", EVERY_MODE, lambda t: helm_record(t, 9, "ConfigMap"), _LEAVE
    ),
    Attempt("a record by its type", EVERY_MODE, lambda _: _typed("helm.sh/release.v1"), _LEAVE),
    Attempt(
        "a record by a type that is to come", EVERY_MODE, lambda _: _typed("helm.sh/v2"), _LEAVE
    ),
    Attempt(
        "a record by its labels",
        EVERY_MODE,
        lambda t: _labelled(secret(release="x"), owner="helm", name=t),
        _LEAVE,
    ),
    Attempt(
        "a record by its labels, as a ConfigMap",
        EVERY_MODE,
        lambda t: _labelled(config_map(release="x"), OWNER="TILLER", owner="HELM", name=t),
        _LEAVE,
    ),
    Attempt(
        "what a record says",
        EVERY_MODE,
        helm_record,
        _LEAVE,
        change=("", {"stringData": {"release": "other"}}),
    ),
    Attempt(
        "the status of a record",
        EVERY_MODE,
        helm_record,
        _LEAVE,
        change=("", {"metadata": {"labels": {"status": "superseded"}}}),
    ),
    Attempt(
        "a record without its labels",
        EVERY_MODE,
        helm_record,
        _LEAVE,
        change=("", {"metadata": {"labels": {"owner": None}}}),
    ),
    Attempt(
        "no record", EVERY_MODE, helm_record, _LEAVE, change=("", {"kind": "DeleteOptions"}),
        verb="DELETE",
    ),
    Attempt(
        "no record, as a ConfigMap",
        EVERY_MODE,
        lambda t: helm_record(t, 3, "ConfigMap"),
        _LEAVE,
        change=("", {"kind": "DeleteOptions"}),
        verb="DELETE",
    ),
    Attempt(
        "the labels of a record on a Secret that is there",
        EVERY_MODE,
        lambda _: {**secret(a="b"), "metadata": {"name": "s-of-its-own"}},
        _LEAVE,
        change=("", {"metadata": {"labels": {"owner": "helm"}}}),
    ),
    Attempt(
        "a token that never ends",
        ("ml", "nlp", "quiet"),
        lambda t: _token(f"vc-{t}"),
        "asks for a token of the host",
    ),
    Attempt(
        "four hundred control planes",
        EVERY_MODE,
        lambda t: stateful_set(t, control_plane(t)),
        _BY_VALUES,
        change=("", {"spec": {"replicas": 400}}),
    ),
]  # fmt: skip
