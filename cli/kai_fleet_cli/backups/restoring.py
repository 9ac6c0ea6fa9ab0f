"""Restore a team's vCluster from a backup: each step looks at what is there, and may be repeated.

While a ServiceAccount of the host says that a vCluster is being restored, the guard `volumes` of
the host admits no pod of its control plane: no store starts that is not whole, whoever updates
meanwhile.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from kai_fleet.cluster.kube.api import Object
from kai_fleet.cluster.kube.errors import AbsentError, RefusedError
from kai_fleet.isolation.policies import HELD, RESTORING, VOLUMES, VOLUMES_LABEL, policy_name
from kai_fleet.releases.chart_stores import ChartStore
from kai_fleet.values import get
from kai_fleet_cli.backups import store_volumes
from kai_fleet_cli.backups.backup import Backup
from kai_fleet_cli.backups.control_plane import ControlPlane
from kai_fleet_cli.backups.host import Host, until
from kai_fleet_cli.backups.restore_job import RestoreJob
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.errors import UserError

_OWN_KEY = "sa.key"
_ANEW = "kai-fleet/anew"  # annotation of the hold: all members of the etcd begin anew
_GUARDS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_STOP_SECONDS = 180.0
_START_SECONDS = 600.0


@dataclass(frozen=True)
class Restore:
    """The restore of one vCluster.

    Attributes:
        host: Its host.
        backup: What it gets.
    """

    host: Host
    backup: Backup

    @property
    def plane(self) -> ControlPlane:
        """Its control plane."""
        return ControlPlane(self.host.api, self.team)

    @property
    def team(self) -> str:
        """The team."""
        return self.backup.record["team"]

    @property
    def _hold(self) -> str:
        """The path of the ServiceAccount that keeps the control plane stopped."""
        return f"{self.plane.path}/serviceaccounts/{self.team}-restore"

    def hold(self, store: ChartStore) -> None:
        """Keep the control plane from starting, and give it its certificates.

        A namespace that is gone is created; the update after it adds what belongs to it. If an etcd
        is to get another number of members, the hold says so until the restore is done: those that
        have a store would not let the others in.
        """
        api = self.host.api
        path = self.plane.path
        if api.find(path) is None:
            api.post("/api/v1/namespaces", {"metadata": {"name": self.plane.namespace}})
        annotations = {HELD: self.team, RESTORING: self.backup.record["taken"]}
        if self.plane.members() not in (0, len(store.etcds(self.team))):
            annotations[_ANEW] = "true"
        self._ensure(
            "serviceaccounts",
            f"{self.team}-restore",
            {
                "metadata": {"labels": VOLUMES_LABEL, "annotations": annotations},
                "automountServiceAccountToken": False,
            },
        )
        self._ensure_certificates()

    def _ensure_certificates(self) -> None:
        """Give the vCluster the certificates of the backup, unless it has those or newer ones.

        One that was given a new authority since keeps it: who has left stays out. The key of its
        service accounts tells it from another vCluster.
        """
        name = f"{self.team}-certs"
        found = self.host.api.find(f"{self.plane.path}/secrets/{name}") or {}
        certificates = self.backup.certificates
        if get(found, "data", _OWN_KEY) == certificates[_OWN_KEY]:
            return
        as_vcluster_does = {"labels": {"app": "vcluster", "vcluster-name": self.team}}
        content = {"metadata": as_vcluster_does, "data": dict(certificates)}
        self._ensure("secrets", name, content)

    def _require_hold(self) -> None:
        """Refuse to go on if the host's guard does not know of restores. Raises UserError."""
        guard = self.host.api.find(f"{_GUARDS}/{policy_name(VOLUMES)}") or {}
        rules = [rule["expression"] for rule in get(guard, "spec", "validations") or []]
        if not any(RESTORING in rule for rule in rules):
            raise UserError(
                f"the host has no guard that keeps vCluster {self.team} stopped: update the stack"
                " with this version of kai-fleet first"
            )

    def _ensure(self, kind: str, name: str, content: Object) -> None:
        """Create an object of the core API in the namespace, or replace its content."""
        path = f"{self.plane.path}/{kind}"
        metadata = {**content["metadata"], "name": name}
        try:
            self.host.api.post(path, {**content, "metadata": metadata})
        except RefusedError as error:
            if error.status != 409:
                raise
            self.host.api.patch(f"{path}/{name}", content)

    def has_store(self, store: ChartStore) -> bool:
        """Whether the control plane is there, with a store of this type and number of members."""
        workload = self.plane.workload()
        if workload is None or self.plane.members() != len(store.etcds(self.team)):
            return False
        return str(workload["kind"]).lower() == store.workload

    def stop(self) -> None:
        """Delete the pods of the control plane and wait until they are gone.

        Raises UserError if they stay, or if the host would start others.
        """
        self._require_hold()
        say(f"stopping the control plane of team {self.team}; its pods go on")
        for pod in self.plane.pods():
            self.host.api.delete(f"{self.plane.path}/pods/{pod.name}")
        until(
            lambda: not self.plane.pods(),
            _STOP_SECONDS,
            f"the control plane of team {self.team} does not stop; look at its pods: kubectl"
            f" -n {self.plane.namespace} get pods -l app=vcluster,release={self.team}",
        )

    def provide_store(self) -> None:
        """Create the volumes of the store that are missing, and wait for an etcd.

        Raises UserError if the vCluster is not there, or its etcd does not get ready.
        """
        hold = self.host.api.get(self._hold)
        store_volumes.provide(self.plane, anew=_ANEW in hold["metadata"]["annotations"])
        if self.plane.etcd() is None:
            return
        self._nudge("statefulsets", f"{self.team}-etcd")
        until(
            self.plane.etcd_is_ready,
            _START_SECONDS,
            f"the etcd of team {self.team} is not Ready; look with: kubectl"
            f" -n {self.plane.namespace} describe pods -l app=vcluster-etcd",
        )

    def fill(self) -> None:
        """Write the backup into the store, and check that all of it is there.

        Raises UserError if it is not: the control plane stays stopped.
        """
        RestoreJob(self.host, self.plane).run(self.backup)

    def start(self) -> None:
        """Let the control plane start, and wait until it is Ready."""
        self.host.api.delete(self._hold)
        for replica_set in self.plane.replica_sets(self.plane.workload()):
            self._nudge("replicasets", replica_set["metadata"]["name"])
        self._nudge("statefulsets", self.team)
        until(
            self._has_started,
            _START_SECONDS,
            f"the control plane of team {self.team} does not start; look with: .venv/bin/fleet"
            " doctor",
        )
        self._own_certificates()

    def _has_started(self) -> bool:
        """Whether a pod is Ready, and vCluster has written its Secret."""
        is_ready = any(pod.is_ready for pod in self.plane.pods())
        return is_ready and self.host.api.find(self._kubeconfig) is not None

    @property
    def _kubeconfig(self) -> str:
        """The path of the Secret with the kubeconfig, which vCluster writes when it starts."""
        return f"{self.plane.path}/secrets/vc-{self.team}"

    def _own_certificates(self) -> None:
        """Give the Secret of the certificates the owner that vCluster gives its other Secret."""
        owners = get(self.host.api.get(self._kubeconfig), "metadata", "ownerReferences")
        if owners:
            owned = {"metadata": {"ownerReferences": owners}}
            self.host.api.patch(f"{self.plane.path}/secrets/{self.team}-certs", owned)

    def _nudge(self, kind: str, name: str) -> None:
        """Have a controller try again at once: after refusals it waits for minutes.

        A change of its object does that, so an annotation comes and goes.
        """
        path = f"{self.plane.apps}/{kind}/{name}"
        for value in (datetime.now(UTC).isoformat(), None):
            body = {"metadata": {"annotations": {"kai-fleet/restored": value}}}
            with suppress(AbsentError):
                self.host.api.patch(path, body)
