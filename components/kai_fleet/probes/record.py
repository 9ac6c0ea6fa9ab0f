"""`run record`: nothing, where Helm's records of a vCluster's release are what its chart makes.

Helm believes its records, and a tenant may have written one before the guard stood. This is run
before the release is changed and before it is removed, and stops both.
"""

from __future__ import annotations

import os

from kai_fleet.kube.errors import KubeError, complaint
from kai_fleet.probes.wait import NotReadyError, cluster, reported, say
from kai_fleet.releases import helm_record


@reported
def main() -> None:
    """Exit 1, with what to do. Where they cannot be read, Helm cannot read them either."""
    namespace, _, release = os.environ["RECORD_RELEASE"].partition("/")
    try:
        secrets = cluster().list(
            f"/api/v1/namespaces/{namespace}/secrets",
            labelSelector=helm_record.SELECTOR.format(release),
        )
    except KubeError as why:
        say(f"warning: Helm's record of {namespace}/{release} is not looked at ({complaint(why)})")
        return
    if found := helm_record.forged(secrets, release, namespace):
        said = helm_record.sentence(found, release, namespace)
        raise NotReadyError(f"{said}, and run this again. Nothing was done to the release.")


if __name__ == "__main__":
    main()
