"""Objects that the stack declares and that are not there: rows of `desired.Required`."""

from collections.abc import Iterable, Iterator

from kai_fleet.wording import plural
from kai_fleet_cli.doctor.causes import Fault, fault
from kai_fleet_cli.doctor.desired import Required
from kai_fleet_cli.doctor.snapshot import Cluster


def absent(cluster: Cluster, required: Iterable[Required], *checks: str) -> Iterator[Fault]:
    """One fault for each row of these checks whose object is not there."""
    for row in required:
        kinds = plural(2, row.kind).lower()
        found = cluster.named(kinds, row.name, row.namespace)
        if row.check in checks and found is None and kinds not in cluster.unreadable:
            name = f"{row.namespace}/{row.name}" if row.namespace else row.name
            own = {"kind": row.kind, "level": row.level, "harm": row.harm, "check": row.check}
            yield fault("absent", cluster, name, **own)
