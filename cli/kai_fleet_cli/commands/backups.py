"""`fleet team backup` and `fleet team restore`."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from pulumi import automation

from kai_fleet.names import FLEET
from kai_fleet.wording import listed
from kai_fleet_cli import hosts
from kai_fleet_cli.backups import files, lost_pods, taking
from kai_fleet_cli.backups.backup import Backup, counted, pods_that_would_go
from kai_fleet_cli.backups.control_plane import ControlPlane
from kai_fleet_cli.backups.files import KEY, KEY_FILE
from kai_fleet_cli.backups.host import Host, host_of
from kai_fleet_cli.backups.restoring import Restore
from kai_fleet_cli.backups.scheduled import Kept
from kai_fleet_cli.commands import options, updates
from kai_fleet_cli.commands.teams import Name
from kai_fleet_cli.display import terminal
from kai_fleet_cli.engine import runs, workspace
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.reading import settings_of
from kai_fleet_cli.teams import changes
from kai_fleet_stack import declared

KeyFile = Annotated[
    Path, typer.Option("--key", envvar=KEY, help="The file of the key, in the format of age.")
]

_FROM = "A backup, or a folder of TEAM.backup. Unset: what kai-fleet:backup keeps."
Source = Annotated[Path | None, typer.Option("--from", help=_FROM)]
_AT = "The last one that is kept until this time, in UTC. Unset: the last one."
Until = Annotated[datetime | None, typer.Option("--at", help=_AT)]

_RESTORED = ("embedded", "etcd")


def backup(
    name: Name,
    to: Annotated[Path, typer.Option(help="The file, which is encrypted.")],
    stack: options.StackFile = "sandbox",
    key: KeyFile = KEY_FILE,
) -> None:
    """Write a backup of a team's vCluster: its store, its certificates, its configuration.

    It is encrypted with a key, which the first backup makes. Without that file nobody reads it.
    """
    changes.stack_file(stack).team(name)
    with host_of(stack) as host:
        taking.write(host, name, to, key)
    terminal.result(f"Restore it with: {FLEET} team restore {name} --from {to} --stack {stack}")


def restore(
    names: Annotated[list[str], typer.Argument(help="The teams.")],
    source: Source = None,
    at: Until = None,
    stack: options.StackFile = "sandbox",
    yes: options.Sure = False,
    key: KeyFile = KEY_FILE,
) -> None:
    """Give the vClusters of teams the content of backups; their running pods go on.

    Namespaces, releases and volumes that are gone are made anew, and a store may become one of
    another type: write it into the stack's file before. Interrupted, the same command goes on.
    """
    file = changes.stack_file(stack)
    of_file = f" --from {source}" if source else ""
    command = f"{FLEET} team restore {' '.join(names)}{of_file} --stack {stack}"
    loss = f"{' and '.join(names)} would lose what is newer than the backup"
    terminal.require_answer(command, loss, yes=yes)
    teams = [file.team(name).name for name in names]
    backups = {name: files.read(name, source, key) for name in teams if source}
    with host_of(stack) as host:
        if source is None:
            backups = {name: _kept(host, stack, name, at) for name in teams}
        for name, taken in backups.items():
            _show_losses(host, taken, source or Path(), key)
            if not yes:
                terminal.confirm_name(name, "restore it")
        _restore(host, stack, backups, command)
    for name, taken in backups.items():
        terminal.result(f"Done: team {name} is as it was at {taken.record['taken']}")


def _kept(host: Host, stack: str, team: str, at: datetime | None) -> Backup:
    """A team's backup that its CronJob keeps. `at` is in UTC.

    Raises UserError if the team has none, or as Kept.read.
    """
    keeps = settings_of(stack).teams[team].backup
    if not keeps:
        raise UserError(
            f"kai-fleet:backup of Pulumi.{stack}.yaml keeps nothing of team {team}; give a file of"
            f" fleet team backup: --from {team}.backup"
        )
    moment = at.replace(tzinfo=UTC) if at else None
    return Kept(host, team, keeps.namespace).read(moment)


def _restore(host: Host, stack: str, backups: Mapping[str, Backup], command: str) -> None:
    """Restore teams: no control plane starts before its store is whole.

    `command` goes on after an interruption. Raises as the steps of Restore and an update do.
    """
    restores = {name: Restore(host, taken) for name, taken in backups.items()}
    stores = {team.name: team.store for team in declared.host_of(settings_of(stack)).teams}
    environment = for_stack(stack)
    opened = workspace.open_stack(stack, environment.variables)
    before = workspace.last_state(opened).vclusters
    installs = any(not restores[name].has_store(stores[name]) for name in restores)
    for name in restores:
        if stores[name].type not in _RESTORED:
            raise UserError(
                f"the store of team {name} is {stores[name].type}, which is restored by its own"
                f" means; fleet team restore is for {' and '.join(_RESTORED)}"
            )
    unknown = listed(sorted(restores.keys() - before.keys()), "and")
    if installs and unknown:
        raise UserError(
            f"the state of stack {stack} has no vCluster of {unknown}, so an update would make an"
            " empty one: import the last export of the state first, as docs/lost-state.md says"
        )
    for name, restore_one in restores.items():
        restore_one.hold(stores[name])
    if installs:
        terminal.say("installing what is gone, or has another store; the control planes stay off")
        runs.install(opened, list(restores), command)
    for restore_one in restores.values():
        restore_one.stop()
        restore_one.provide_store()
        restore_one.fill()
        restore_one.start()
    updates.update(opened, environment.standins, refresh=installs)
    after = workspace.last_state(opened).vclusters
    for name in restores:
        _schedule_lost_pods(host, opened, name)
        if name in before and before[name].server != after[name].server:
            fetch = f"{FLEET} team kubeconfig {name} --stack {stack}"
            terminal.result(f"{name} has another address now; hand kubeconfigs out anew: {fetch}")


def _schedule_lost_pods(host: Host, opened: automation.Stack, team: str) -> None:
    """Have the team's KAI place again what is gone on the host."""
    on_host = ControlPlane(host.api, team).synced_pods()
    with closing(hosts.cluster_of_stack(opened, team)) as inside:
        placed = lost_pods.schedule_again(inside, on_host.keys())
    if placed:
        terminal.result(f"{len(placed)} pods of {team} that the host lost are scheduled again")


def _show_losses(host: Host, earlier: Backup, source: Path, key: Path) -> None:
    """Print what a restore would lose: pods on the host, and what is newer in the store.

    The store of now is kept in a file beside the backup if its control plane runs.
    """
    plane = ControlPlane(host.api, earlier.record["team"])
    terminal.result(f"the backup of team {plane.team} is of {earlier.record['taken']}")
    synced = plane.synced_pods() if host.api.find(plane.path) else {}
    gone = pods_that_would_go(earlier, synced)
    terminal.result(f"{len(synced) - len(gone)} pods on the host stay as they are")
    for pod in gone:
        terminal.result(f"  pod {pod} is not in the backup and would be deleted")
    if plane.ready_pod() is None:
        return
    folder = source if source.is_dir() else source.parent
    kept = files.taken_now(folder, f"{plane.team}-before-restore")
    try:
        now = taking.write(host, plane.team, kept, key)
    except UserError as error:
        terminal.say(f"what is newer than the backup is not known, and not kept: {error}")
        return
    newer = counted(now.newer_than_in(earlier))
    terminal.result(f"newer than the backup, and lost: {newer or 'nothing'}")
