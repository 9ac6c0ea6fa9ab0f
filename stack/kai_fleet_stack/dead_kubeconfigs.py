"""Kubeconfigs that people have and that an update made useless."""

from typing import NamedTuple

import pulumi
import yaml
from pulumi import Output, Resource
from pulumi.runtime import is_dry_run

from kai_fleet.names import FLEET
from kai_fleet.values import get


class _Cluster(NamedTuple):
    """What a copy of a kubeconfig needs as it is now; other fields do not make it dead.

    The URL of the server, and its certificate authority in base64; None if the text lacks it.
    """

    server: str | None
    authority: str | None


def warn_of_dead(name: str, last: str | None, kubeconfig: Output[str], component: Resource) -> None:
    """Warn, in an update, if copies of the last kubeconfig, which people have, work no more.

    That is so if the vCluster's server or certificate authority has changed; if both have, the text
    tells of the server alone. It shows the addresses of the server, and no credentials.

    Args:
        name: the team, which is also the vCluster's name.
        last: the kubeconfig of the last update; None or "" if there is none: nothing is compared,
            as if either kubeconfig has no cluster.
        kubeconfig: that of this update. The warning comes when its value is known, and never if it
            stays unknown because a resource failed. What raises an error for `last` fails the
            program when it is in this one.
        component: the resource that the warning is about.

    Raises:
        yaml.YAMLError: the last kubeconfig is no YAML, in a preview too.
        KeyError: its `clusters` are a mapping, in a preview too.
    """
    before = _cluster(last)
    if not before or is_dry_run():
        return

    def compare(text: str) -> None:
        """Warn if this kubeconfig has another server or authority. Raises as `_cluster` does."""
        now = _cluster(text)
        if not now or now == before:
            return
        why = f"its API is at {now.server} now, and was at {before.server}"
        if now.server == before.server:
            why = "its certificate authority is another one"
        stack = pulumi.get_stack()
        write = f"{FLEET} team kubeconfig {name} --stack {stack} --output {name}.kubeconfig"
        dead = f"the kubeconfigs that people have of vCluster {name} are dead: {why}"
        pulumi.log.warn(f"{dead}. Write new ones, and hand them out: {write}", component)

    kubeconfig.apply(compare)


def _cluster(kubeconfig: str | None) -> _Cluster | None:
    """The first cluster in a kubeconfig; None without one, and for None or "".

    Raises yaml.YAMLError if the text is no YAML, and KeyError if its `clusters` are a mapping.
    """
    clusters = get(yaml.safe_load(kubeconfig or ""), "clusters")
    if not clusters:
        return None
    cluster = get(clusters[0], "cluster")
    return _Cluster(get(cluster, "server"), get(cluster, "certificate-authority-data"))
