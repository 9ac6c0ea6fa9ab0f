"""What serves GPUs to pods: DaemonSets, and GPUs that KAI shares."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from kai_fleet.gpu_providers import GPU_CHARTS
from kai_fleet.kube.pods import GROUP, RESERVATIONS, groups_of
from kai_fleet.releases import DISABLED
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.causes import Fault, explain, fault
from kai_fleet_cli.doctor.checks.kai import make_again
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_cli.doctor.usage import GPU_INDEX

PATIENCE: Final = 60.0  # seconds; KAI waits 40 for a reservation pod


def daemon_sets(host: Cluster, _: Snapshot) -> Iterator[Fault]:
    """DaemonSets of the GPU stack, and device plugins anywhere, without their pods."""
    for item in host.all("daemonsets"):
        scheduled = int(item.status.get("desiredNumberScheduled") or 0)
        ready = int(item.status.get("numberReady") or 0)
        of_gpus = item.namespace in GPU_CHARTS or item.is_device_plugin
        if not of_gpus or ready >= scheduled or host.age(item) <= PATIENCE:
            continue
        pods = (
            pod for pod in host.within("pods", item.namespace) if pod.name.startswith(item.name)
        )
        known = explain(host, "", "", host.messages_of(item, *pods))
        look = f"look with: `{host.kubectl} -n {item.namespace} get pods,events`"
        why = (known.cause, known.fix) if known else ("nothing known is why", look)
        values = {"ready": ready, "scheduled": scheduled}
        name = item.namespaced_name
        yield fault("daemon-set-not-ready", host, name, cause=why[0], fix=why[1], **values)


def sharing(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Whether sharing is on where it is declared, and each shared GPU is held once."""
    uses = ((pod, cluster.uses.get((pod.namespace, pod.name))) for pod in cluster.kai_pods)
    shares = [(pod, use) for pod, use in uses if use is not None and use.gpu.shared]
    declared = cluster.desired.declared and cluster.desired.gpu_sharing
    if _is_on(cluster) is False and (shares or declared):
        row = "sharing-switched-off" if declared else "sharing-off"
        yield fault(row, cluster, "", asking=len(shares), again=make_again(cluster))
    held = {pod.labels.get(GROUP) for pod in cluster.within("pods", RESERVATIONS)}
    members: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for pod, use in ((pod, use) for pod, use in shares if use.phase == "Running"):
        if not use.groups:
            yield fault("share-without-group", cluster, pod.namespaced_name, label=GROUP)
        for group in use.groups:
            members[group].append((pod.namespaced_name, use.gpu.fraction or 0.0))
    for group, of_group in members.items():
        total = sum(fraction for _, fraction in of_group)
        row = "group-too-full" if group in held else "group-without-reservation"
        for name, _fraction in of_group if group not in held or total > 1.0001 else ():
            yield fault(row, cluster, name, group=group, total=f"{total:g}")


def _is_on(cluster: Cluster) -> bool | None:
    """Whether this KAI lets pods share GPUs; None where nothing shows it."""
    config = cluster.named("configs", "kai-config")
    spec = config.spec if config else {}
    if mode := value_at(spec, "global.gpuSharingMode"):
        return str(mode) != DISABLED  # from v0.18; it wins over the older switch
    setting = value_at(spec, "admission.gpuSharing")
    return None if setting is None else bool(setting)


def reservations(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Reservation pods, each of which holds a GPU for those that share it."""
    users = {group for pod in cluster.kai_pods for group in groups_of(pod.labels)}
    for pod in cluster.within("pods", RESERVATIONS):
        name = pod.namespaced_name
        if cluster.age(pod) < PATIENCE:
            continue
        if pod.phase != "Running":
            texts = cluster.messages_of(pod)
            known = explain(cluster, "pod", name, texts)
            cause = known.cause if known else next(iter(texts), "nothing gives a reason")
            fix = f"{known.fix}; then " if known else ""
            yield fault("reservation-waits", cluster, name, phase=pod.phase, cause=cause, fix=fix)
        elif not pod.annotations.get(GPU_INDEX):
            yield fault("reservation-without-gpu", cluster, name)
        elif pod.labels.get(GROUP) not in users:
            yield fault("reservation-unused", cluster, name)
