"""Read the backups that the CronJob of a team keeps, in a pod like those of its Jobs."""

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from kai_fleet.backup.arguments import BACKUP
from kai_fleet.cluster.kube.api import Object
from kai_fleet.values import get
from kai_fleet_cli.backups.backup import Backup, unpacked
from kai_fleet_cli.backups.host import Host, until
from kai_fleet_cli.errors import UserError

_CONTAINER = "keep"
_SECONDS = 3600
_START_SECONDS = 300.0
_RESTIC = ("restic", "--no-cache")


@dataclass(frozen=True)
class Kept:
    """The backups of a team, as its pod reads them.

    Attributes:
        host: The host.
        team: The team.
        namespace: The namespace of the Jobs.
    """

    host: Host
    team: str
    namespace: str

    @property
    def _pod(self) -> str:
        return f"restore-{self.team}"

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def read(self, at: datetime | None) -> Backup:
        """The last backup, or the last one until a time.

        Raises:
            UserError: There is none, it is damaged, or its store cannot be read.
            KubeError: The host does not answer, or refuses.
        """
        with self._reading():
            listed = json.loads(self._run("snapshots", "--json", "--host", self.team))
            times = {datetime.fromisoformat(each["time"]): str(each["id"]) for each in listed}
            fitting = [time for time in times if at is None or time <= at]
            if not fitting:
                first = f"; its first one is of {min(times)}" if times else ""
                raise UserError(f"team {self.team} has no backup of that time{first}")
            taken = max(fitting)
            archive = self._run("dump", "--archive", "tar", times[taken], "/")
        return unpacked(archive, f"the backup of {taken:%Y-%m-%d %H:%M}")

    def _run(self, *command: str) -> bytes:
        in_pod = ["exec", "-i", "-n", self.namespace, self._pod, "-c", _CONTAINER, "--"]
        return self.host.run(*in_pod, *_RESTIC, *command)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Have a pod with restic while the block runs."""
        cron_job = self.host.api.find(
            f"/apis/batch/v1/namespaces/{self.namespace}/cronjobs/{BACKUP}-{self.team}"
        )
        if cron_job is None:
            raise UserError(
                f"the host has no CronJob {BACKUP}-{self.team} in namespace {self.namespace}, which"
                " knows where the backups are. Read one with restic: restic --repo TO dump"
                f" --archive tar latest / > {self.team}.backup, and give it: --from"
                f" {self.team}.backup"
            )
        self._delete()
        until(lambda: not self._phase(), _START_SECONDS, f"pod {self._pod} does not end")
        self.host.api.post(self._pods, self._pod_of(cron_job))
        try:
            until(
                lambda: self._phase() == "Running",
                _START_SECONDS,
                f"pod {self._pod}, which reads backups, does not start; look with: kubectl -n"
                f" {self.namespace} describe pod {self._pod}",
            )
            yield
        finally:
            self._delete()

    def _delete(self) -> None:
        self.host.api.delete(f"{self._pods}/{self._pod}")

    def _phase(self) -> str:
        """The phase of the pod; "" without one."""
        pod = self.host.api.find(f"{self._pods}/{self._pod}")
        return str(get(pod, "status", "phase") or "")

    def _pod_of(self, cron_job: Object) -> Object:
        """A pod as the CronJob makes it, which waits in place of keeping a backup."""
        template = copy.deepcopy(cron_job["spec"]["jobTemplate"]["spec"]["template"])
        spec = template["spec"]
        spec.pop("initContainers", None)
        spec["activeDeadlineSeconds"] = _SECONDS
        spec["containers"][0]["command"] = ["sleep", str(_SECONDS)]
        return {"metadata": {"name": self._pod}, "spec": spec}
