"""The Job that writes a backup into the store of a vCluster, by vCluster's own program."""

import copy
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from kai_fleet.cluster.kube.api import Object
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet_cli.backups.backup import Backup
from kai_fleet_cli.backups.control_plane import CONTAINER, ControlPlane
from kai_fleet_cli.backups.host import Host, until
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.errors import UserError

_SCRIPT = files(__package__).joinpath("restore.sh").read_text()
_FOLDER = "/backup"
_SNAPSHOT = f"{_FOLDER}/snapshot.tar.gz"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_STOP_SECONDS = 180.0
_START_SECONDS = 600.0
_FILL_SECONDS = 1800.0


@dataclass(frozen=True)
class RestoreJob:
    """The Job of one vCluster.

    Attributes:
        host: Its host.
        plane: Its control plane, which does not run.
    """

    host: Host
    plane: ControlPlane

    def run(self, backup: Backup) -> None:
        """Write a backup into the store, and check that all of it is there.

        Raises:
            UserError: The pod does not start, the backup arrives cut, or the program fails.
            KubeError: The host does not answer, or refuses.
        """
        self._remove()
        self.host.api.post(self._jobs, self._body())
        look = f"kubectl -n {self.plane.namespace} describe job {self._name}"
        late = f"Job {self._name} does not start; look with: {look}"
        until(lambda: self._phase() not in ("", "Pending"), _START_SECONDS, late)
        self._send(backup.snapshot)
        ended = ("Succeeded", "Failed")
        late = f"Job {self._name} does not end; look with: {look}"
        until(lambda: self._phase() in ended, _FILL_SECONDS, late)
        printed = self.host.run(
            "logs",
            "-n",
            self.plane.namespace,
            self._pods()[0].name,
            "-c",
            CONTAINER,
        ).decode()
        expected = f"Successfully restored {backup.record['keys']} etcd keys"
        if self._phase() != "Succeeded" or expected not in printed:
            last = printed.strip().rpartition("\n")[2]
            raise UserError(f"the restore failed, and the control plane stays stopped: {last}")
        say(f"restored {backup.record['keys']} keys of {backup.record['taken']}")
        self._remove()

    @property
    def _name(self) -> str:
        return f"{self.plane.team}-restore"

    @property
    def _jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.plane.namespace}/jobs"

    def _pods(self) -> list[KubeObject]:
        selector = f"job-name={self._name}"
        pods = self.host.api.list(f"{self.plane.path}/pods", labelSelector=selector)
        return list(map(KubeObject, pods))

    def _phase(self) -> str:
        """The phase of the Job's pod; "" before there is one."""
        return next((str(pod.phase) for pod in self._pods()), "")

    def _remove(self) -> None:
        """Delete the Job of this restore, or of an earlier one, and wait until its pod is gone."""
        self.host.api.delete(f"{self._jobs}/{self._name}")
        for pod in self._pods():
            self.host.api.delete(f"{self.plane.path}/pods/{pod.name}")
        late = f"the pod of Job {self._name} does not end"
        until(lambda: not self._pods(), _STOP_SECONDS, late)

    def _body(self) -> Object:
        """A Job whose pod is the control plane's with another command.

        The host's guards admit such a pod of a controller alone, on the nodes of control planes.
        """
        workload = self.plane.workload() or {}
        spec = copy.deepcopy(workload["spec"]["template"]["spec"])
        spec["restartPolicy"] = "Never"
        spec.pop("topologySpreadConstraints", None)
        volumes = spec.setdefault("volumes", [])
        (container,) = [each for each in spec["containers"] if each["name"] == CONTAINER]
        for probe in _PROBES:
            container.pop(probe, None)
        container["command"] = ["sh", "-c", _SCRIPT]
        container.pop("args", None)
        mounts = container.setdefault("volumeMounts", [])
        mounts.append({"name": "backup", "mountPath": _FOLDER})
        spec["containers"] = [container]
        volumes.append({"name": "backup", "emptyDir": {}})
        for claim in workload["spec"].get("volumeClaimTemplates") or []:
            volume = claim["metadata"]["name"]
            of_claim = {"claimName": f"{volume}-{self.plane.team}-0"}
            volumes.append({"name": volume, "persistentVolumeClaim": of_claim})
        labels = {"app": "vcluster-restore", "release": self.plane.team}
        return {
            "metadata": {"name": self._name},
            "spec": {
                "backoffLimit": 0,
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }

    def _send(self, snapshot: bytes) -> None:
        """Copy the snapshot into the pod, and let it begin if the checksum there is right."""
        receive = f"head -c {len(snapshot)} > {_SNAPSHOT} && sha256sum {_SNAPSHOT}"
        in_pod = self.plane.exec_words(self._pods()[0].name)
        printed = self.host.run(*in_pod, "sh", "-c", receive, sent=snapshot)
        if hashlib.sha256(snapshot).hexdigest() not in printed.decode():
            raise UserError("the backup arrived cut in its pod; run the same command again")
        self.host.run(*in_pod, "touch", f"{_FOLDER}/complete")
