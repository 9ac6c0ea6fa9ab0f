"""Minimum run times are durations that Go parses."""

from collections.abc import Iterator

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet_policies.amounts import LONGEST_DURATION, as_go_duration, is_go_duration, overflows
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.rules.problem import Level, Problem, Severity, of_queue

NAME = "queue-duration"
LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = "KAI takes Go durations, which know no days and no weeks: 1d does not parse (Q4)."
REMEDY = "Write hours, minutes and seconds: 24h for a day, 168h for a week, 1h30m."


def check(cluster: DeclaredCluster) -> Iterator[Problem]:
    """The two minimum run times of each queue."""
    for queue in cluster.queues:
        for key, value in (
            ("preemptMinRuntime", queue.preempt_min_runtime),
            ("reclaimMinRuntime", queue.reclaim_min_runtime),
        ):
            if value is None:
                continue
            place = of_queue(queue, cluster, key)
            if value is UNKNOWN:
                yield place.undecided(f"the value of {key} is known")
            elif not isinstance(value, str) or not is_go_duration(value):
                meant = as_go_duration(value) or "24h"
                yield place.mandatory(
                    f"has {key}: {value}, which is not a duration for KAI (units are h, m and s);"
                    f" write {key}: {meant}"
                )
            elif overflows(value):
                yield place.mandatory(
                    f"has {key}: {value}, longer than a duration can be; write {key}:"
                    f" {LONGEST_DURATION} (292 years) or less"
                )
