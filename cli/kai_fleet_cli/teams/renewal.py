"""A new authority for the administrators of a team's vCluster: kubeconfigs of the old one end."""

import base64
import hashlib
from contextlib import closing

from kai_fleet.cluster.client_authority import succeed
from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import MALFORMED, KubeObject
from kai_fleet.cluster.probes import wait
from kai_fleet.cluster.tenant_kubeconfig import pieces, stored_pieces
from kai_fleet.releases import VCLUSTER
from kai_fleet.values import get
from kai_fleet_cli.backups.control_plane import ControlPlane, chart_version
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import host_of_stack

# By this one vCluster restarts itself: the guards of the host let it through.
_ANNOTATION = "vcluster.loft.sh/cert-rotation-at"


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
    except (KubeError, wait.NotReadyError, *MALFORMED) as error:
        raise UserError(
            f"vCluster {team} on the host of stack {stack}: {error}. The same command goes on"
        ) from None


def _renew(api: Api, team: str, kubeconfig: str) -> None:
    """Renew the authority, as `renew` does.

    Raises KubeError, AbsentError if a part is not there; NotReadyError if its version cannot do it
    or it does not start; one of MALFORMED for another Secret.
    """
    control_plane = ControlPlane(api, team)
    namespace = control_plane.namespace
    kind = wait.control_plane(api, team, namespace)
    plane = f"{control_plane.apps}/{kind}s/{team}"
    secrets = f"{control_plane.path}/secrets"
    release = VCLUSTER.get(f"v{chart_version(api.get(plane))}")
    if release and not release.splits_authorities:
        raise wait.NotReadyError(
            f"{release.version} has one authority for its clients and its server. Raise"
            " vcluster.version in the stack file, one line at a time, to v0.33.4 or newer"
        )
    old = stored_pieces(kubeconfig).certificate
    # What ends. The same value changes and restarts nothing a second time.
    mark = {_ANNOTATION: hashlib.sha256(old.encode()).hexdigest()}
    _replace(api, f"{secrets}/{team}-certs", mark)
    api.patch(plane, {"spec": {"template": {"metadata": {"annotations": mark}}}})

    def missing() -> list[str]:
        access = api.get(f"{secrets}/vc-{team}")
        is_new = pieces(access.get("data") or {}).certificate != old
        if is_new and KubeObject(api.get(plane)).rolled_out:
            return []
        return [f"{kind} {team}, which restarts with the new authority"]

    look = f"kubectl -n {namespace} get pods and kubectl -n {namespace} logs {kind}/{team}"
    wait.until_ready(api, f"vCluster {team}", missing, 600.0, look)


def _replace(api: Api, path: str, mark: dict[str, str]) -> None:
    """Write a new authority into the Secret `NAME-certs` at `path`, unless it has this annotation.

    Raises as `_renew`.
    """
    secret = api.get(path)
    if get(secret, "metadata", "annotations", _ANNOTATION) in mark.values():
        return
    # Keys of pkg/certs/constants.go: `ca` signs certificates of clients, and `client-ca` is what is
    # trusted. That of its server, `server-ca`, stays. If a certificate is missing, vCluster issues
    # all but the authorities anew when it starts (certsExpiringSoon in ensure.go); this one is of
    # no use without kubelets.
    changed: dict[str, str | None] = {"apiserver-kubelet-client.crt": None}
    authority = succeed(base64.b64decode(secret["data"]["client-ca.crt"]))
    for part, content in authority.items():
        encoded = base64.b64encode(content).decode()
        changed |= {f"ca.{part}": encoded, f"client-ca.{part}": encoded}
    # Of two at once one is refused, by the version.
    marked = {"annotations": mark, "resourceVersion": secret["metadata"]["resourceVersion"]}
    api.patch(path, {"metadata": marked, "data": changed})
