"""Starting and stopping the sandbox."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kai_fleet.cluster.kube.errors import UnreachableError
from sandbox import chart_packages, directory
from sandbox.control_plane import ports, volumes
from sandbox.control_plane.command_lines import ControlPlane, host_plane
from sandbox.control_plane.kube_api import AdminApi, KubeError
from sandbox.control_plane.processes import Processes, ServerProcess
from sandbox.directory import CHECKOUT, CONTEXT, Sandbox, SandboxError, State
from sandbox.nodes import fake_nodes
from sandbox.tools import toolbox
from sandbox.tools.table import KUBERNETES_PROVIDER, ON_PATH, Say
from sandbox.tools.toolbox import Tool
from sandbox.vcluster import containers

TOOL_NAMES: Final = tuple(name for name, check in ON_PATH.items() if not check.tests_only)
_PLUGIN: Final = "pulumi-resource-"
_RECONNECT_SECONDS: Final = 30.0
SIMULATED: Final = (
    "nodes, GPUs and pods (KWOK)",
    "vCluster's syncer, snapshot and restore",
    "KAI's programs",
)

__all__ = ["Sandbox", "SandboxError", "down", "find", "up"]


def find() -> Sandbox | None:
    """The sandbox that was started and not taken down, healthy or not; or None."""
    where = directory.chosen()
    state = directory.read_state(where)
    return None if state is None else Sandbox(where, state.standins)


def up(say: Say) -> Sandbox:
    """Start the sandbox; what runs already is left alone, what died is restarted.

    `say` gets each step. Raises SandboxError when a part does not come up or the directory
    belongs to something else, and what `sandbox.tools.toolbox.ensure` raises.
    """
    where = directory.chosen()
    found = toolbox.ensure(TOOL_NAMES, say)
    directory.create(where)
    with directory.locked(where, say):
        directory.create(where)  # whoever held the lock may have taken it down
        paths = {name: tool.path for name, tool in found.items()}
        in_home = link_plugins(found, where / "pulumi-home")
        on_path = {name: path for name, path in paths.items() if name not in in_home}
        _link_tools(where / "bin", on_path)
        containers.write_kubectl(where)
        chart_packages.package(where / "charts", say)
        remembered = {
            name: {"version": tool.version, "path": str(tool.path), "origin": tool.origin}
            for name, tool in found.items()
        }
        standins = (*SIMULATED, *toolbox.standins(found))
        begun = time.monotonic()
        try:
            with _window(where, say) as window:
                directory.write_state(where, State(window.base, remembered, standins))
                plane = host_plane(where, window)
                started = _serve(plane, paths, say)
            started += _complete(plane, paths, say)
        except SandboxError as why:
            afresh = "If it happens again, start afresh: `make down`, then `make up`."
            raise SandboxError(f"{why}\n{afresh}") from why
        if started:
            took = time.monotonic() - begun
            if found[KUBERNETES_PROVIDER].origin == "built":
                say(
                    f"Pulumi's Kubernetes plugin is v{found[KUBERNETES_PROVIDER].version}, the"
                    " newest that package registries have; the SDK asks for a newer one"
                )
            say(f"the control plane is up after {took:.1f} s ({', '.join(started)} started)")
        else:
            say("the control plane is up already")
        return Sandbox(where, standins)


def down(say: Say) -> None:
    """Stop every process of the sandbox and remove its directory.

    A sandbox that does not exist is down. Raises SandboxError when a process cannot be ended.
    """
    where = directory.chosen()
    if not where.exists():
        say("no sandbox is up")
        return
    directory.check(where)
    with directory.locked(where, say):
        say("stopping the sandbox's processes")
        Processes(where).stop_everything()
        directory.remove(where)
    say("the sandbox is gone: no process, no state")


@contextmanager
def _window(where: Path, say: Say) -> Iterator[ports.Ports]:
    """The ports of the sandbox: the same ones while its etcd has data, else free ones.

    Unless its servers listen there already, no other sandbox chooses or starts meanwhile.
    """
    before, processes = directory.read_state(where), Processes(where)
    kept = ports.Ports(before.base_port) if before and (where / "etcd").exists() else None
    if kept and all(map(processes.running, ("etcd", "kube-apiserver"))):
        yield kept
        return
    waits = "waiting for another sandbox whose servers are starting"
    with directory.held(toolbox.cache_root() / "ports.lock", lambda: say(waits)):
        yield kept or ports.choose()


def _serve(host: ControlPlane, tools: Mapping[str, Path], say: Say) -> list[str]:
    """Bring up etcd and the API server; the names of those that had to be started."""
    processes = Processes(host.directory)
    host.etcd.prepare()
    host.prepare(CONTEXT)
    api = host.api()
    store, server = host.etcd.part(tools["etcd"]), host.api_server(tools)
    probes = ((store, host.etcd.healthy), (server, api.ready))
    return [part.name for part, answers in probes if _bring_up(processes, part, answers, say)]


def _has_host_objects(api: AdminApi) -> bool:
    """Make the host's nodes and its StorageClass; False if the API server drops the connection.

    One whose etcd was away does so for a few seconds after it is ready again.
    """
    try:
        fake_nodes.ensure_host_nodes(api)
        volumes.ensure_storage_class(api)
    except UnreachableError:
        return False
    return True


def _complete(host: ControlPlane, tools: Mapping[str, Path], say: Say) -> list[str]:
    """Bring up what needs the API server, nodes and supervisor; the names of what started."""
    where, api = host.directory, host.api()
    processes = Processes(where)
    others = list(host.others(tools))
    started = [part.name for part in others if processes.ensure(part)]
    server = host.api_server(tools)
    try:
        processes.wait_for(server, lambda: _has_host_objects(api), say, _RECONNECT_SECONDS)
    except KubeError as why:
        log = where / "logs" / "kube-apiserver.log"
        raise SandboxError(
            f"kube-apiserver refused the sandbox's nodes: {why} (log: {log})"
        ) from why
    supervisor = _supervisor(where)
    if processes.running(supervisor.name) is None:
        (where / "supervisor-ready").unlink(missing_ok=True)
    if processes.ensure(supervisor):
        started.append(supervisor.name)
    kwok = next(part for part in others if part.name == "kwok")
    # It panics at times as it starts (v0.8.0, node_controller.go:158), and does not again.
    _bring_up(processes, kwok, lambda: fake_nodes.all_ready(api), say)
    processes.wait_for(supervisor, (where / "supervisor-ready").exists, say)
    for part in (*others, supervisor):
        if part.name not in started and processes.ensure(part):
            started.append(part.name)  # it died while the others came up
        processes.require(part)
    return started


def _bring_up(
    processes: Processes, part: ServerProcess, answers: Callable[[], bool], say: Say
) -> bool:
    """Bring up a part and wait for its answer; True when it had to be started."""
    started = processes.ensure(part)
    if started:
        say(f"starting {part.name}")
    try:
        processes.wait_for(part, answers, say)
    except SandboxError:
        if started or processes.running(part.name) is not None:
            raise
        # It was ending when it was checked.
        return _bring_up(processes, part, answers, say)
    return started


def _supervisor(where: Path) -> ServerProcess:
    return ServerProcess(
        "supervisor",
        (sys.executable, "-m", "sandbox.vcluster.supervisor", str(where)),
        where / "logs" / "supervisor.log",
        {"PYTHONPATH": str(CHECKOUT)},
    )


def link_plugins(tools: Mapping[str, Tool], pulumi_home: Path) -> list[str]:
    """Link provider plugins to where the engine keeps its own; the names of those linked.

    One on PATH works too, but the engine warns of it twice at each run. What was on
    PATH already is left alone: it is the user's choice. One that was built is older than the SDK
    asks for, and the engine takes such a one from PATH only.
    """
    linked = []
    for name, tool in tools.items():
        if name.startswith(_PLUGIN) and tool.origin not in ("PATH", "built"):
            kind = f"resource-{name.removeprefix(_PLUGIN)}"
            _link(pulumi_home / "plugins" / f"{kind}-v{tool.version}" / name, tool.path)
            linked.append(name)
    return linked


def _link_tools(folder: Path, tools: Mapping[str, Path]) -> None:
    """Link exactly these tools into the folder, by name."""
    for entry in folder.iterdir():
        if entry.name not in tools:
            entry.unlink()
    for name, path in tools.items():
        if path != folder / name:  # one that was found on PATH by its link in this very folder
            _link(folder / name, path)


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if not (link.is_symlink() and link.readlink() == target):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
