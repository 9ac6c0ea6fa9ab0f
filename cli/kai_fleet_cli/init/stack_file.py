"""Read what a cluster has, and write it as a first stack file. The cluster is only read."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from contextlib import closing
from importlib.resources import files
from typing import Any, Final

import jinja2
import yaml

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import AbsentError, KubeError, complaint
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.kube.round import OPERATOR_BYTES
from kai_fleet.releases import DEFAULT_VCLUSTER, KAI, advised, mig, version_key
from kai_fleet.releases.keys import GPU_RESOURCES
from kai_fleet.settings.files.project import FLEET
from kai_fleet.settings.sections.platform import EXAMPLE_VERSION, NVIDIA, counted
from kai_fleet_cli.doctor.read import READS
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, running_sandbox
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import SECONDS
from kai_fleet_policies.model.cluster import HOST

_KNOWN: Final = yaml.safe_load((files(__package__) / "known.yaml").read_text(encoding="utf-8"))


def read(context: str | None) -> tuple[Cluster, dict[str, Any]]:
    """The cluster of a context, by default the current one; its context and Kubernetes version.

    Raises UserError.
    """
    file = str(running_sandbox().kubeconfig) if context == SANDBOX_CONTEXT else None
    paths = {kind: READS[kind] for kind in _KNOWN["kinds"]} | _KNOWN["paths"]
    try:
        with closing(
            Api.of_context(file, context, total_seconds=SECONDS, most_bytes=OPERATOR_BYTES)
        ) as api:
            version = str(api.get("/version").get("gitVersion") or "")
            objects, refused = api.lists(paths, len(paths))
    except KubeError as why:
        raise UserError(f"context {context or '(the current one)'}: {complaint(why)}") from None
    if no := refused.get("nodes"):
        raise UserError(f"context {api.context} may not list nodes ({no}); write --context NAME")
    unread = {kind: str(why) for kind, why in refused.items() if not isinstance(why, AbsentError)}
    # The file names each kind that was not read, for a person to look at.
    host = Cluster(HOST, objects={kind: objects.get(kind, []) for kind in paths})
    return host, {"context": api.context, "version": version, "unread": unread}


def text(stack: str, context: str | None) -> tuple[str, str]:
    """A stack file for a context's cluster, and what to do then. Raises UserError."""
    host, found = read(context)
    nodes, classes = host.all("nodes"), host.all("storageclasses")
    resource = max(GPU_RESOURCES, key=lambda name: sum(node.gpus(name) for node in nodes))
    shown = [node for node in nodes if _gpus(node, resource)]
    with_gpus = shown or [node for node in nodes if node.labels.keys() & {*_KNOWN["gpus"]}]
    found.update(stack=stack, name=_name(stack, ()), host=host, resource=resource, shown=shown)
    found["pools"], found["unlabelled"] = _pools(with_gpus, resource)
    places = {str(node.spec.get("providerID")).partition(":")[0] for node in nodes}
    given = (item.status.get("loadBalancer") or {} for item in host.all("services"))
    balanced = any(each.get("ingress") for each in given) and "k3s" not in places
    found["balanced"] = balanced or not places.isdisjoint(_KNOWN["clouds"])
    addresses = [each for node in reversed(nodes) for each in node.status.get("addresses") or ()]
    found["addresses"] = {each["type"]: str(each["address"]) for each in addresses}
    taints = [taint for node in with_gpus for taint in node.spec.get("taints") or ()]
    keys = {taint["key"] for taint in taints if taint.get("effect") != "PreferNoSchedule"}
    temporary = tuple(_KNOWN["own_taints"])
    found["taints"] = sorted(key for key in keys if not key.startswith(temporary))
    found["defaults"] = [item.name for item in classes if item.is_default_class]
    found.update(kai=advised(KAI) or EXAMPLE_VERSION, vcluster=DEFAULT_VCLUSTER, fleet=FLEET)
    found.update(quote=shlex.quote, version_key=version_key)
    found["yaml"] = lambda value: yaml.safe_dump([value], default_flow_style=True, width=9999)[1:-2]
    loader, strict = jinja2.PackageLoader(__package__ or "", "."), jinja2.StrictUndefined
    templates = jinja2.Environment(loader=loader, undefined=strict, trim_blocks=True)
    file = templates.get_template("stack.yaml.jinja").render(found)
    return file, templates.get_template("then.txt.jinja").render(found)


def _gpus(node: KubeObject, resource: str) -> dict[str, int]:
    """The GPUs and MIG slices that a node advertises, by their resources' names."""
    slices = filter(mig.is_known, node.status.get("allocatable") or ())
    names = (resource, *(slices if resource == NVIDIA else ()))
    return {name: count for name in names if (count := int(node.gpus(name)))}


def _pools(
    nodes: Sequence[KubeObject], resource: str
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Nodes with GPUs by one label, as the rules want; those without it, alone they are a pool."""
    key = max(_KNOWN["pools"], key=lambda name: sum(bool(n.labels.get(name)) for n in nodes))
    groups = defaultdict[str, list[KubeObject]](list)
    for node in nodes:
        groups[node.labels.get(key, "")].append(node)
    rest, pools = groups.pop("", []), dict[str, dict[str, Any]]()
    for value, items in (groups or ({"ml": rest} if rest else {})).items():
        kinds = Counter[str]()
        for node in items:
            labelled = (node.labels.get(name, "") for name in _KNOWN["gpus"])
            marked = next((int(count) for count in labelled if count.isdecimal()), 1)
            kinds.update(_gpus(node, resource) or {resource: marked})
        gpus = kinds[resource] if kinds.keys() == {resource} else dict(kinds)
        pool = {"labels": {key: value}, "gpus": gpus, "nodes": [node.name for node in items]}
        pools[_name(value, pools)] = pool | {"counted": counted(gpus, mig.slices(kinds))}
    return pools, [node.name for node in rest]


def _name(value: str, taken: Collection[str]) -> str:
    """A name of a team or cluster from any text."""
    words = re.sub(r"[^a-z0-9]+", "-", value.lower())[:36]
    name = re.sub(r"^[^a-z]+|-+$", "", words) or "team"
    names = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    return next(each for each in names if each not in (*taken, HOST))
