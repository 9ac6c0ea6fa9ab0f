"""The Deployments of the KAI that runs in a cluster: its version and its schedulers."""

from collections.abc import Iterable

from kai_usage.keys import KAI_NAMESPACE
from kai_usage.objects import Object, name_of, namespace_of, spec_of

# Deployments whose image tag is KAI's version. The first one that exists decides.
_WITH_VERSION = ("kai-operator", "scheduler", "kai-scheduler-default", "binder")


def kai_version(deployments: Iterable[Object]) -> str | None:
    """The image tag of KAI's operator, or else of its scheduler or binder, such as `v0.9.2`.

    Deployments of other namespaces than KAI's are left out; one without a namespace counts as in
    KAI's. The image is that of the first container. None if none of these is among them, or if the
    first one's image has no tag, as one with a digest alone: the others are not asked then.
    """
    parts = {}
    for deployment in deployments:
        if namespace_of(deployment) in (KAI_NAMESPACE, ""):
            parts[name_of(deployment)] = deployment
    for name in _WITH_VERSION:
        if name in parts:
            return _image_tag(parts[name])
    return None


def is_scheduler(deployment: Object) -> bool:
    """Whether a Deployment in KAI's namespace is a scheduler: of the chart, or of a shard.

    Its name decides; the namespace is not looked at.
    """
    name = name_of(deployment)
    return name == "scheduler" or name.startswith("kai-scheduler-")


def _image_tag(deployment: Object) -> str | None:
    """The tag of the first container's image; None without a container or a tag."""
    template = spec_of(deployment).get("template") or {}
    containers = spec_of(template).get("containers")
    if not containers:
        return None
    image = str(containers[0].get("image") or "")
    without_digest = image.partition("@")[0]
    name_and_tag = without_digest.rpartition("/")[2]  # a registry before it may have a port
    return name_and_tag.partition(":")[2] or None
