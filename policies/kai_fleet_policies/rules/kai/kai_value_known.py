"""Only values that the KAI chart of that version reads, and none that undo what is handled."""

from kai_fleet import releases
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.releases.chart_values import unknown_keys
from kai_fleet.values import UNKNOWN, value_at
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.kai import of_kai

LEVEL = Level.MANDATORY
SEVERITY = Severity.MEDIUM
WHY = (
    "Helm ignores a value that a chart does not read, without a word, and KAI's charts renamed"
    " several: the value that was meant is then not set (K5)."
)
REMEDY = "Write the key that the message names, or drop it."

# What the program sets for a reason, and what an override would bring back.
_UNDONE = {
    "defaultQueue.createDefaultQueue": "makes queues that collide with declared ones (K4)",
    "topologyMigration.enabled": "runs a hook that fails beside Kueue's Topologies (K13)",
    "postCleanup.enabled": "runs a hook that hangs on tainted nodes (K14)",
}


def check(cluster: DeclaredCluster) -> Problems:
    """The values of each KAI in the cluster against its version's chart."""
    for release in cluster.kai:
        place = of_kai(release, cluster, "values")
        if release.values is UNKNOWN:
            yield place.undecided("its values are known")
            continue
        if not isinstance(release.version, str):
            continue  # kai-version-known says so
        if release.version not in releases.KAI and not release.untested:
            continue
        for unknown in unknown_keys("kai", release.version, release.values):
            readers = f"; {listed(unknown.versions)} read it" if unknown.versions else ""
            instead = f"write {unknown.instead}" if unknown.instead else "drop it"
            yield place.at(unknown.key).mandatory(
                f"has the value {unknown.key}, which {release.version} does not read{readers};"
                f" {instead}"
            )
        for key, why in _UNDONE.items():
            if value_at(release.values, key) is True:
                yield place.at(key).mandatory(f"has {key}: true, which {why}; drop it")
