"""The control plane of a team's vCluster, taken for something else (T16)."""

from tests.attacks.attempts.attempt import EVERY_MODE, STACKS, TENANTS, Attempt
from tests.attacks.objects import Object, container, control_plane, pod, secret

_LEAVE = "debugging containers to the stack that installs it"


def _running(team: str) -> Object:
    """A pod of its StatefulSet, on the platform's nodes."""
    found = {"apiVersion": "v1", "kind": "Pod", **control_plane(team)}
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return found


def _config(team: str) -> Object:
    """What its chart writes for it: flags and commands of everything in it."""
    found = secret(**{"config.yaml": "controlPlane: {}"})
    found["metadata"]["name"] = f"vc-config-{team}"
    return found


def _credentials(name: str) -> Object:
    """In the place of what the platform writes of kai-fleet:registries."""
    found = secret(a="b")
    found["metadata"]["name"] = name
    return found


_CREDENTIALS = "the name of the credentials that the platform writes"
_NONE_LEFT = ("", {"kind": "DeleteOptions"})
_OTHERS = ("", {"stringData": {"a": "c"}})


CONTROL = [
    *(
        Attempt(
            f"the credentials of registries, {how}{by}: {name}",
            teams,
            lambda _, n=name: _credentials(n),
            _CREDENTIALS,
            change=change,
            who=who,
            verb=verb,
        )
        for name, teams, who, by in (
            ("kai-fleet-registries", EVERY_MODE, TENANTS, ""),
            # The account of a team's own stack makes this one.
            ("kai-fleet-team-registries", ("ml", "dev"), TENANTS, ""),
            ("kai-fleet-registries", ("vision", "audio"), STACKS, " by a team's own stack"),
        )
        for how, change, verb in (
            ("made before the platform does", None, ""),
            ("changed", _OTHERS, "PATCH"),
            ("taken away", _NONE_LEFT, "DELETE"),
        )
    ),
    Attempt(
        "another program in a pod of the control plane",
        EVERY_MODE,
        _running,
        _LEAVE,
        change=("", {"spec": {"containers": [{"name": "syncer", "image": "evil:1"}]}}),
    ),
    Attempt(
        "a debugging container in the control plane",
        EVERY_MODE,
        _running,
        _LEAVE,
        change=("ephemeralcontainers", {"spec": {"ephemeralContainers": [container("debug")]}}),
    ),
    Attempt(
        "a pod of the control plane without its labels",
        EVERY_MODE,
        _running,
        _LEAVE,
        change=("", {"metadata": {"labels": {"release": None}}}),
    ),
    *(
        Attempt(
            f"a pod by the name of one of the control plane: {name}",
            EVERY_MODE,
            lambda t, n=name: pod(t, name=t + n),
            "has a name like the pods of the control plane",
        )
        for name in ("-7", "-etcd-0", "-5b8d7f9c6d-x7k2p")
    ),
    Attempt(
        "a larger control plane",
        EVERY_MODE,
        _running,
        "leave its resources to the stack",
        change=(
            "resize",
            {
                "spec": {
                    "containers": [{"name": "syncer", "resources": {"requests": {"cpu": "64"}}}]
                }
            },
        ),
    ),
    Attempt(
        "the control plane's values for ever",
        EVERY_MODE,
        _config,
        "change it by the values of the vCluster",
        change=("", {"immutable": True}),
    ),
    Attempt(
        "another program by the control plane's own values",
        EVERY_MODE,
        _config,
        "change it by the values of the vCluster",
        change=("", {"stringData": {"config.yaml": "controlPlane: {distro: evil}"}}),
    ),
    Attempt(
        "values of its own for the control plane",
        EVERY_MODE,
        _config,
        "change it by the values of the vCluster",
    ),
]
