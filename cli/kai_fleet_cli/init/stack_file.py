"""Write a first stack file from what a cluster has. The cluster is only read."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import jinja2
import yaml

from kai_fleet.cluster.kube.answer_limits import OPERATOR_BYTES
from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import AbsentError, KubeError, complaint
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.names import FLEET
from kai_fleet.releases import DEFAULT_VCLUSTER, KAI, advised, minor_line, table
from kai_fleet.values import get
from kai_fleet_cli.doctor.read import READS
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, running_sandbox
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import SECONDS
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_stack.settings.sections.platform import EXAMPLE_VERSION, NVIDIA, gpus_with_slices
from kai_usage import mig
from kai_usage.keys import GPU_RESOURCES

_KNOWN = table("known", __package__)
_LONGEST_NAME = 36
_ONLY_TEAM = "ml"


@dataclass(frozen=True)
class Host:
    """What was read from a cluster.

    Attributes:
        cluster: Its objects; a kind that was not read has none.
        context: The context's name in the kubeconfig.
        version: The version of its Kubernetes; "" if it does not say one.
        unread: Why a kind was refused, HTTP status and reason, by kind; without kinds that the API
            server does not have.
    """

    cluster: Cluster
    context: str
    version: str
    unread: Mapping[str, str]


@dataclass(frozen=True)
class Pool:
    """Nodes with GPUs that become a team's.

    Attributes:
        labels: The label that they have, or are to get.
        gpus: The number of their GPUs; by resource unless all are of the cluster's GPU resource.
        nodes: Their names.
        kai_gpus: Their GPUs as KAI counts those of a queue.
    """

    labels: Mapping[str, str]
    gpus: int | Mapping[str, int]
    nodes: Sequence[str]
    kai_gpus: int


def read(context: str | None) -> Host:
    """Read the cluster of a context; None is the current one.

    All requests have SECONDS together, and all answers OPERATOR_BYTES.

    Raises:
        UserError: The cluster does not answer, refuses its version or the list of nodes, the
            kubeconfig is of no use, or the context is the sandbox's, which does not run or is not
            installed.
    """
    file = str(running_sandbox().kubeconfig) if context == SANDBOX_CONTEXT else None
    paths = {kind: READS[kind] for kind in _KNOWN["kinds"]}
    paths |= _KNOWN["paths"]
    try:
        opened = Api.of_kubeconfig(
            context=context, file=file, total_seconds=SECONDS, most_bytes=OPERATOR_BYTES
        )
        with closing(opened) as api:
            version = str(api.get("/version").get("gitVersion") or "")
            objects, refused = api.lists(paths, len(paths))
    except KubeError as error:
        name = context or "(the current one)"
        raise UserError(f"context {name}: {complaint(error)}") from None
    if refused_nodes := refused.get("nodes"):
        raise UserError(
            f"context {api.context} may not list nodes ({refused_nodes}); write --context NAME"
        )
    unread = {
        kind: str(refusal)
        for kind, refusal in refused.items()
        if not isinstance(refusal, AbsentError)
    }
    # The file names each kind that was not read: for the template it is empty.
    cluster = Cluster(HOST, objects={kind: objects.get(kind, []) for kind in paths})
    return Host(cluster, api.context, version, unread)


def text(stack: str, context: str | None) -> tuple[str, str]:
    """A stack file for a context's cluster, and the next steps; nothing is written.

    Raises UserError as `read`, one of MALFORMED for malformed objects.
    """
    host = read(context)
    nodes = host.cluster.all("nodes")
    resource = _gpu_resource(nodes)
    advertising = [node for node in nodes if _gpus(node, resource)]
    labelled = [node for node in nodes if node.labels.keys() & _KNOWN["gpus"]]
    with_gpus = advertising or labelled
    pools, unlabelled = _pools(with_gpus, resource)
    classes = host.cluster.all("storageclasses")
    fields = {
        "stack": stack,
        "name": _name(stack, ()),
        "host": host.cluster,
        "context": host.context,
        "version": host.version,
        "unread": host.unread,
        "resource": resource,
        "shown": advertising,
        "pools": pools,
        "unlabelled": unlabelled,
        "balanced": _has_load_balancers(host.cluster),
        "addresses": _addresses(nodes),
        "taints": _taints(with_gpus),
        "defaults": [item.name for item in classes if item.is_default_class],
        "kai": advised(KAI) or EXAMPLE_VERSION,
        "vcluster": DEFAULT_VCLUSTER,
        "fleet": FLEET,
        "quote": shlex.quote,
        "minor_line": minor_line,
        "yaml": _on_one_line,
    }
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__ or "", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    file = templates.get_template("stack.yaml.jinja").render(fields)
    return file, templates.get_template("then.txt.jinja").render(fields)


def _on_one_line(value: object) -> str:
    """A value as YAML on one line."""
    in_list = yaml.safe_dump([value], default_flow_style=True, width=9999)
    return in_list[1:-2]


def _gpu_resource(nodes: Sequence[KubeObject]) -> str:
    """The resource under which the nodes advertise most GPUs; of equals, also of none at all, the
    first in GPU_RESOURCES.
    """
    return max(GPU_RESOURCES, key=lambda resource: sum(node.gpus(resource) for node in nodes))


def _has_load_balancers(cluster: Cluster) -> bool:
    """Whether a Service of type LoadBalancer gets an address: in a known cloud, or if one has it.

    In k3s the address of such a Service is a node's, which does not count.
    """
    # Such as `aws` in aws:///eu-1/i-0.
    clouds = {str(node.spec.get("providerID")).partition(":")[0] for node in cluster.all("nodes")}
    if not clouds.isdisjoint(_KNOWN["clouds"]):
        return True
    if "k3s" in clouds:
        return False
    services = cluster.all("services")
    return any(get(service.status, "loadBalancer", "ingress") for service in services)


def _addresses(nodes: Sequence[KubeObject]) -> dict[str, str]:
    """An address for each type: the last one of that type on the first node that has it."""
    addresses: dict[str, str] = {}
    for node in reversed(nodes):
        for address in node.status.get("addresses") or ():
            addresses[address["type"]] = str(address["address"])
    return addresses


def _taints(nodes: Sequence[KubeObject]) -> list[str]:
    """The keys of taints that teams on these nodes have to tolerate, sorted.

    Not those of effect PreferNoSchedule, nor those that begin as `own_taints` of `known.yaml`.
    """
    keys = set[str]()
    for node in nodes:
        for taint in node.spec.get("taints") or ():
            if taint.get("effect") != "PreferNoSchedule":
                keys.add(taint["key"])
    own = tuple(_KNOWN["own_taints"])
    return sorted(key for key in keys if not key.startswith(own))


def _gpus(node: KubeObject, resource: str) -> dict[str, int]:
    """The GPUs that a node advertises, by resource: the one given and, if that is NVIDIA's, its
    MIG slices of known profiles. Resources without any are left out.
    """
    resources = [resource]
    if resource == NVIDIA:
        resources += filter(mig.is_known, node.status.get("allocatable") or ())
    counts = {name: int(node.gpus(name)) for name in resources}
    return {name: count for name, count in counts.items() if count}


def _pools(
    nodes: Sequence[KubeObject],
    resource: str,
) -> tuple[dict[str, Pool], list[str]]:
    """Pools of nodes with GPUs, by the team's name, and the names of nodes without a pool's label.

    The label is the known one that most nodes have; of equals the first in `known.yaml`. An empty
    value counts as none. If no node has it, all are one pool, `ml`, which they are to get as the
    label's value; they are in the second result, too.
    """
    label = max(
        _KNOWN["pools"],
        key=lambda known: sum(bool(node.labels.get(known)) for node in nodes),
    )
    groups: defaultdict[str, list[KubeObject]] = defaultdict(list)
    for node in nodes:
        groups[node.labels.get(label, "")].append(node)
    unlabelled = groups.pop("", [])
    if unlabelled and not groups:
        groups[_ONLY_TEAM] = unlabelled
    pools: dict[str, Pool] = {}
    for value, members in groups.items():
        name = _name(value, pools)
        pools[name] = _pool({label: value}, members, resource)
    return pools, [node.name for node in unlabelled]


def _pool(
    labels: Mapping[str, str],
    nodes: Sequence[KubeObject],
    resource: str,
) -> Pool:
    """The pool of these nodes, at least one. If a node advertises no GPUs, its labels say how many
    it has of `resource`.
    """
    counts = Counter[str]()
    for node in nodes:
        counts.update(_gpus(node, resource) or {resource: _labelled_gpus(node)})
    gpus: int | Mapping[str, int] = dict(counts)
    if counts.keys() == {resource}:
        gpus = counts[resource]
    return Pool(
        labels=labels,
        gpus=gpus,
        nodes=[node.name for node in nodes],
        kai_gpus=gpus_with_slices(gpus, mig.slices(counts)),
    )


def _labelled_gpus(node: KubeObject) -> int:
    """The number of GPUs by the first known label of a node that has a number; else 1."""
    for label in _KNOWN["gpus"]:
        value = node.labels.get(label, "")
        if value.isdecimal():
            return int(value)
    return 1


def _name(text: str, taken: Collection[str]) -> str:
    """A name for a team or a cluster from any text, with a number behind it if it is taken.

    It is in lower case, begins with a letter, and has a dash for what is no letter or digit. `host`
    is always taken. Of the text 36 characters count; without a letter in them it is `team`.
    """
    words = re.sub(r"[^a-z0-9]+", "-", text.lower())[:_LONGEST_NAME]
    name = re.sub(r"^[^a-z]+|-+$", "", words) or "team"
    unavailable = {*taken, HOST}
    candidate = name
    number = 2
    while candidate in unavailable:
        candidate = f"{name}-{number}"
        number += 1
    return candidate
