"""A new authority for the administrators of a team's vCluster: kubeconfigs of the old one end."""

import base64
import hashlib
from contextlib import closing
from typing import Final

from kai_fleet.cluster.client_authority import succeed
from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes import wait
from kai_fleet.cluster.tenant_kubeconfig import pieces, stored_pieces
from kai_fleet.releases import VCLUSTER
from kai_fleet.values import get
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import host_of_stack

# By this one vCluster restarts itself: the guards of the host let it through.
_ANNOTATION: Final = "vcluster.loft.sh/cert-rotation-at"
_RESTART_SECONDS: Final = 600.0
# Authorities in Secret NAME-certs (pkg/certs/constants.go): certificates of clients are signed by
# the first, which the vCluster trusts as the second. That of its server, server-ca, stays.
_SIGNING: Final = "ca"
_TRUSTED: Final = "client-ca"
# Without kubelets of its own nothing in the vCluster uses it. If one certificate is missing, the
# vCluster issues all but the authorities anew when it starts (certsExpiringSoon in ensure.go).
_MISSING: Final = "apiserver-kubelet-client.crt"


def renew(stack: str, team: str, kubeconfig: str) -> None:
    """Give a team's vCluster a new authority of clients, and wait until it has started with it.

    The Secret gets the authority in one write; then the control plane restarts, and issues the
    administrator's certificate. A run that was cut off between is gone on with.

    Args:
        stack: The stack that declares the team.
        team: The team.
        kubeconfig: The one of the last update, which is to end. If its mark is on the Secret, the
            run before was cut off.

    Raises:
        UserError: The host does not answer or refuses, a part of the vCluster is not there or its
            version cannot do it, or it did not start in ten minutes.
    """
    try:
        with closing(host_of_stack(stack)) as api:
            _renew(api, team, kubeconfig)
    except (KubeError, wait.NotReadyError, ValueError) as error:
        raise UserError(
            f"vCluster {team} on the host of stack {stack}: {error}. The same command goes on"
        ) from None


def _renew(api: Api, team: str, kubeconfig: str) -> None:
    """Renew the authority, as `renew` does.

    Raises KubeError; NotReadyError if a part is not there, cannot do it or does not start;
    ValueError for what is no certificate.
    """
    namespace = f"team-{team}"
    kind = wait.control_plane(api, team, namespace)
    if kind is None:
        raise wait.NotReadyError(f"its control plane is not in namespace {namespace}")
    plane = f"/apis/apps/v1/namespaces/{namespace}/{kind}s/{team}"
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    _require_two_authorities(KubeObject(api.get(plane)))
    old = stored_pieces(kubeconfig).certificate
    # What ends. The same value changes and restarts nothing a second time.
    mark = {_ANNOTATION: hashlib.sha256(old.encode()).hexdigest()[:16]}
    _replace(api, f"{secrets}/{team}-certs", mark)
    api.patch(plane, {"spec": {"template": {"metadata": {"annotations": mark}}}})

    def missing() -> list[str]:
        access = api.get(f"{secrets}/vc-{team}")
        is_new = pieces(access.get("data") or {}).certificate != old
        if is_new and KubeObject(api.get(plane)).rolled_out:
            return []
        return [f"{kind} {team}, which restarts with the new authority"]

    look = f"kubectl -n {namespace} get pods and kubectl -n {namespace} logs {kind}/{team}"
    wait.until_ready(api, f"vCluster {team}", missing, _RESTART_SECONDS, look)


def _require_two_authorities(plane: KubeObject) -> None:
    """Raise NotReadyError if the version of a control plane has one for clients and server."""
    version = f"v{plane.labels.get('chart', '').removeprefix('vcluster-')}"
    release = VCLUSTER.get(version)
    if release and not release.splits_authorities:
        raise wait.NotReadyError(
            f"{version} has one authority for its clients and its server. Raise vcluster.version in"
            " the stack file, one line at a time, to v0.33.4 or newer"
        )


def _replace(api: Api, path: str, mark: dict[str, str]) -> None:
    """Write a new authority into the Secret `NAME-certs` at `path`, unless it has this annotation.

    Raises as `_renew`.
    """
    secret = api.find(path)
    if secret is None:
        raise wait.NotReadyError(f"{path} is gone; a restart of the control plane makes it")
    metadata = secret["metadata"]
    if get(metadata, "annotations", _ANNOTATION) in mark.values():
        return
    changed: dict[str, str | None] = {_MISSING: None}
    authority = succeed(base64.b64decode(secret["data"][f"{_TRUSTED}.crt"]))
    for part, content in authority.items():
        encoded = base64.b64encode(content).decode()
        changed |= {f"{_SIGNING}.{part}": encoded, f"{_TRUSTED}.{part}": encoded}
    # Of two at once one is refused, by the version.
    about = {"annotations": mark, "resourceVersion": metadata["resourceVersion"]}
    api.patch(path, {"metadata": about, "data": changed})
