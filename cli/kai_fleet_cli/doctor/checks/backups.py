"""Checks of the backups of a team's control plane: that they are taken, and verified.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

from collections.abc import Mapping

from kai_fleet.backup.arguments import BACKUP, LABEL, VERIFY
from kai_fleet.backup.schedules import hours_between
from kai_fleet.names import TEAM_LABEL
from kai_fleet.values import get
from kai_fleet_cli.doctor.faults import Affected, Faults
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_usage.objects import has_labels
from kai_usage.times import seconds_since

_SECONDS_PER_HOUR = 3600


def backup(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a warning for each CronJob of a team's backups: it is not there, its last run failed,
    or it had no success within twice its period.
    """
    host = snapshot.host
    name = state.team.name
    team = snapshot.settings.teams.get(name)
    if team is None or not team.backup:
        return
    namespace = team.backup.namespace
    for kind, schedule in ((BACKUP, team.backup.schedule), (VERIFY, team.backup.verify)):
        cron_job = host.find("cronjobs", f"{kind}-{name}", namespace)
        subject = Affected(host, "CronJob", f"{kind}-{name}")
        if cron_job is None:
            if schedule:
                yield subject.warning("is not there: none of its Jobs runs", host.update_command)
            continue
        created = cron_job["metadata"].get("creationTimestamp")
        success = cron_job.status.get("lastSuccessfulTime", created)
        hours = seconds_since(success, host.now) / _SECONDS_PER_HOUR
        labels = {TEAM_LABEL: name, LABEL: kind}
        failure = _failure(host, labels, namespace)
        if failure:
            cause = f"its last run failed: {failure}"
        elif hours > 2 * hours_between(schedule):
            cause = f"had no success for {hours:.0f} hours, more than twice its period"
        else:
            continue
        logs = f"-n {namespace} logs -l {TEAM_LABEL}={name},{LABEL}={kind} --all-containers"
        yield subject.warning(
            cause,
            "do what it says, or look with: ",
            host.command(logs),
        )


def _failure(host: Cluster, labels: Mapping[str, str], namespace: str) -> str:
    """Why the newest pod with these labels failed, as its first failed container says; "" if it did
    not.
    """
    pods = [pod for pod in host.within("pods", namespace) if has_labels(pod, labels)]
    newest = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)
    if newest is None or newest.phase != "Failed":
        return ""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in newest.status.get(kind, []):
            ended = get(container, "state", "terminated")
            if get(ended, "exitCode"):
                return str(get(ended, "message") or get(ended, "reason"))
    return "its pod says no more"
