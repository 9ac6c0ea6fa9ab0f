"""The queue label and `schedulerName: kai-scheduler` come together."""

from kai_fleet.fleet.cluster import Cluster
from kai_fleet.releases.keys import FRACTION, MEMORY, QUEUE_LABEL, SCHEDULER
from kai_fleet.values import UNKNOWN, pairs
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity, of_workload

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Without schedulerName the default scheduler places the pod: its queue and its GPU fraction are"
    " ignored without a word. Without the label KAI leaves it Pending (W6)."
)
REMEDY = f"Write both: schedulerName: {SCHEDULER} in the pod's spec, the label {QUEUE_LABEL} on it."


def check(cluster: Cluster) -> Problems:
    """Each workload: label, GPU annotations and scheduler fit together."""
    for workload in cluster.workloads:
        place = of_workload(workload, cluster)
        scheduler, names_queue = workload.scheduler, workload.names_queue
        annotations, writer = workload.annotations, workload.writer
        if scheduler == SCHEDULER:
            if writer is not None and writer.queue_elsewhere:
                continue
            if names_queue is UNKNOWN:
                yield place.undecided("its labels are known")
            elif not names_queue and not workload.pod_group:
                yield place.mandatory(
                    f"has schedulerName: {SCHEDULER} but no label {QUEUE_LABEL}; write the label"
                    " with a leaf queue, or drop schedulerName to use the default scheduler"
                )
            continue
        if scheduler is None and names_queue is False and writer is not None and writer.scheduler:
            continue  # its operator writes it; workload-leaf-queue says that no queue is named
        fractions = [key for key in (FRACTION, MEMORY) if key in pairs(annotations)]
        reasons = [f"the label {QUEUE_LABEL}"] if names_queue is True else []
        reasons += [f"the annotation {key}" for key in fractions]
        if reasons and scheduler is UNKNOWN:
            yield place.undecided("its schedulerName is known")
        elif reasons:
            has = f"schedulerName: {scheduler}" if scheduler else "no schedulerName"
            yield place.mandatory(
                f"has {listed(reasons, 'and')} but {has}, so KAI never sees it and they are"
                f" ignored; write schedulerName: {SCHEDULER}"
            )
        elif names_queue is UNKNOWN or annotations is UNKNOWN:
            yield place.undecided("its labels and annotations are known")
