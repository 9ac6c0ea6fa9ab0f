"""An identity provider in the values of a vCluster: the flags of its API server, and its authority.

Through vCluster's own proxy a token is as good as a certificate: it asks the API server whose it is
(TokenReview), and passes on the name and the groups that come back (pkg/authentication).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kai_fleet.releases.chart_values import merged, nested
from kubectl_fleet.paths import value_at

if TYPE_CHECKING:
    from kai_fleet.fleet.model import DeclaredTeam
    from kai_fleet.settings.sections.oidc import Oidc

FILE: Final = "ca.crt"
_FLAGS: Final = "controlPlane.distro.k8s.apiServer.extraArgs"
_VOLUMES: Final = "controlPlane.statefulSet.persistence.addVolumes"
_MOUNTS: Final = "controlPlane.statefulSet.persistence.addVolumeMounts"
_FOLDER: Final = "/etc/kai-fleet/oidc"
_VOLUME: Final = "kai-fleet-oidc"


def with_oidc(team: DeclaredTeam, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with those of the team's identity provider before what their lists have."""
    oidc, file = team.oidc, authority(team)
    if oidc is None:
        return dict(values)
    lists: dict[str, list[Any]] = {_FLAGS: list(flags(oidc))}
    if file is not None:
        lists[_VOLUMES] = [{"name": _VOLUME, "configMap": {"name": file[0]}}]
        lists[_MOUNTS] = [{"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}]
    more = (nested(key, [*own, *(value_at(values, key) or ())]) for key, own in lists.items())
    return merged(values, *more)


def flags(oidc: Oidc) -> tuple[str, ...]:
    """The API server's, every default written out: its own prefix of an email is none."""
    named = {
        "issuer-url": oidc.issuer,
        "client-id": oidc.client_id,
        "username-claim": oidc.username_claim,
        "username-prefix": oidc.username_prefix,
        "groups-claim": oidc.groups_claim,
        "groups-prefix": oidc.groups_prefix,
        **({"ca-file": f"{_FOLDER}/{FILE}"} if oidc.ca else {}),
    }
    return tuple(f"--oidc-{name}={value}" for name, value in named.items())


def runs_with(oidc: Oidc, values: Mapping[str, Any]) -> bool:
    """Whether the API server of a release with these values takes the provider's tokens."""
    return set(flags(oidc)) <= set(value_at(values, _FLAGS) or ())


def authority(team: DeclaredTeam) -> tuple[str, str] | None:
    """The ConfigMap with the provider's authority, and its content; None where that is public.

    Its name has a digest of the content: another one is read by a new pod.
    """
    text = team.oidc.ca if team.oidc is not None else None
    if text is None:
        return None
    return f"{team.name}-oidc-{hashlib.sha256(text.encode()).hexdigest()[:8]}", text
