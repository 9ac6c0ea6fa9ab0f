"""The KAI scheduler, on a host cluster or inside a vCluster, also beside what others' KAI left."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
import pulumi_command as command
import pulumi_kubernetes as kubernetes

from kai_fleet import probes
from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import CRD, ExistingObjects
from kai_fleet.cluster.registry_secrets import registry_secret
from kai_fleet.fleet.deployed_state import KAI_SCHEDULER, NAMESPACE, DeployedState, named
from kai_fleet.fleet.model import DeclaredKai
from kai_fleet.guards.host_rules import KAI_PRIORITIES
from kai_fleet.kai.values import kai_values
from kai_fleet.kube.pods import RESERVATIONS
from kai_fleet.options import after, chart_args, child_of
from kai_fleet.releases import KAI, KaiRelease, kai
from kai_fleet.releases.chart_values import unknown_keys
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.releases.transitions import kai_transition
from kai_fleet.settings.sections.access import OF_STACK
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.values import value_at

_CLUSTER_POLICIES: Final = "clusterpolicies.nvidia.com"
# The priority classes as each chart makes them.
_PRIORITIES: Final = dict(zip(KAI_PRIORITIES, (50, 75, 100, 125), strict=True))
_PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses/"
_OWN_RELEASE: Final = f"{KAI_NAMESPACE}/kai-scheduler"
_GONE_AFTER: Final = "2m"
_WITHOUT_CLASSES: Final[Mapping[str, Any]] = {"defaultPriorityClasses": {"enabled": False}}
_HAND_OVER: Final = (
    "kubectl annotate priorityclass {0} --overwrite meta.helm.sh/release-name=kai-scheduler"
    f" meta.helm.sh/release-namespace={KAI_NAMESPACE} && kubectl label priorityclass {{0}}"
    " --overwrite app.kubernetes.io/managed-by=Helm"
)


@dataclass
class KaiSchedulerArgs:
    """`kai` is what to install, of a version of the release table. `access` is the cluster that the
    probe asks.

    `cluster_policy_crd`: declare the CRD `clusterpolicies.nvidia.com` for versions that wait for
    it; False where a GPU operator brings it (K3). `existing` is what the cluster has already, which
    is used; None inside a vCluster, which is the stack's own. `deployed` is what the stack runs
    now: without it every change of version replaces the release. `ready_timeout` is in seconds.
    """

    kai: DeclaredKai
    access: ClusterAccess
    isolation: Isolation = field(default_factory=Isolation)
    cluster_policy_crd: bool = True
    existing: ExistingObjects | None = None
    deployed: DeployedState = field(default_factory=DeployedState)
    ready_timeout: int = 300


class KaiScheduler(pulumi.ComponentResource):
    """One KAI release, its prerequisites, and the wait until it works.

    Another version upgrades the release in place where that is known to work, else replaces it,
    old one first: no KAI version can be rolled back by Helm, and between several an upgrade
    collides (K7, K8, K9, K12). Queues and running pods stay. Raises UnknownVersionError.
    """

    declared: DeclaredKai
    access: ClusterAccess
    version: str
    ready: pulumi.Resource

    def __init__(
        self, name: str, args: KaiSchedulerArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(KAI_SCHEDULER, name, None, opts)
        own = self.declared = args.kai
        self.access = args.access
        release = kai(own.version or "", untested=own.untested)
        # Without what the component waits for.
        later = pulumi.ResourceOptions(deleted_with=opts.deleted_with if opts else None)
        child = child_of(self, later)
        before: list[pulumi.Resource] = []
        own_namespace, existing = f"{name}-namespace", args.existing
        others = _priority_values(release, own.values, existing) if existing else {}
        if not (existing and existing.of_others(NAMESPACE, KAI_NAMESPACE, own_namespace)):
            # Nothing in it takes long to go. Inside a vCluster its tenant may keep it from going.
            soon = pulumi.CustomTimeouts(delete=_GONE_AFTER) if existing is None else None
            space = kubernetes.core.v1.Namespace(
                own_namespace,
                metadata={"name": KAI_NAMESPACE},
                opts=child_of(self, opts, custom_timeouts=soon),
            )
            before.append(space)
        crd = f"{name}-cluster-policy"
        wanted = release.needs_cluster_policy_crd and args.cluster_policy_crd
        if existing is None:
            if wanted:
                before.append(_cluster_policy_crd(crd, child))
        elif existing.holds(CRD, crd) or (wanted and not existing.find(CRD, _CLUSTER_POLICIES)):
            # Once made it stays as it is: with it would go the ClusterPolicy of a GPU operator,
            # which may have come since and made the CRD its own.
            kept = child_of(self, later, retain_on_delete=True, ignore_changes=["spec"])
            before.append(_cluster_policy_crd(crd, kept))
        if own.registries:
            made = after(child, *before)
            before.append(registry_secret(name, OF_STACK, KAI_NAMESPACE, own.registries, made))
        step = child_of(self, later, delete_before_replace=True)
        replaced = pulumi.ResourceOptions(
            depends_on=before, replace_on_changes=self._replacing(f"{name}-release", args, release)
        )
        self.release = kubernetes.helm.v3.Release(
            f"{name}-release",
            **chart_args("kai-scheduler", release.version, override=own.chart, oci=release.chart),
            name="kai-scheduler",
            namespace=KAI_NAMESPACE,
            values=kai_values(release, own, args.isolation, others),
            timeout=args.ready_timeout,
            # The step below waits, and says for what. Helm would only say that its time is up,
            # and after an upgrade that failed so, the next one keeps the fields that were wrong.
            skip_await=True,
            opts=pulumi.ResourceOptions.merge(step, replaced),
        )
        if own.registries:
            # The chart makes that namespace, and leaves it when it goes.
            reserved = value_at(own.values, "global.resourceReservation.namespace") or RESERVATIONS
            made = after(child, self.release)
            registry_secret(f"{name}-reservation", OF_STACK, reserved, own.registries, made)
        # Removing this step cleans up what the release would leave behind. It goes before the
        # release, also when that is replaced, because its trigger is the release itself; and it
        # is there even if KAI never gets ready.
        command.local.Command(
            f"{name}-clean-up",
            delete=probes.command("kai", "clean-up"),
            environment={
                **args.access.environment(),
                "KAI_CONFIG": "remove" if release.clean_up_config else "keep",
            },
            triggers=[self.release.id],
            opts=step,
        )
        # A finished release is not a ready KAI (K16): its operator brings up the rest, and the
        # queue webhook refuses everything until then.
        self.ready = command.local.Command(
            f"{name}-ready",
            create=probes.command("kai", "wait"),
            update=probes.command("kai", "wait"),
            environment={
                **args.access.environment(),
                "KAI_VERSION": release.version,
                "KAI_DEPLOYMENTS": ",".join(release.deployments),
                "KAI_CONDITIONS": ",".join(release.ready_conditions),
                "KAI_TIMEOUT": str(args.ready_timeout),
            },
            triggers=[self.release.id, *args.deployed.again(KAI_SCHEDULER, name)],
            opts=step,
        )
        self.version = release.version
        # The version is the release's; registered here, it would have the whole state written once
        # more before a switch begins.
        self.register_outputs({"version": own.version})

    def _replacing(self, name: str, args: KaiSchedulerArgs, release: KaiRelease) -> list[str]:
        """The changes that replace the release, and a line in the preview that says which way."""
        before = args.deployed.versions.get(named(KAI_SCHEDULER, name))
        known = KAI.get(before or "")
        if before is not None and before != release.version:
            way = kai_transition(known, release) if known else None
            verb = "upgraded in place" if way and way.kind == "in-place" else "replaced"
            why = way.why if way else f"{before} → {release.version}: {before} is not in the table"
            grouped = release.groups_deployments and not (known and known.groups_deployments)
            news = "; a Deployment made after it is one PodGroup" if grouped else ""
            pulumi.log.info(f"KAI is {verb}: {why}. Queues and running pods stay{news}", self)
            if way and way.kind == "in-place":
                return []
        # Where an upgrade makes kai-config anew, new values are such an upgrade too (K12).
        return ["version", "values"] if release.recreates_config else ["version"]


def _priority_values(
    release: KaiRelease, own: Mapping[str, Any], existing: ExistingObjects
) -> Mapping[str, Any]:
    """The values by which the priority classes of others are used, and neither made nor deleted.

    `own` are the values that are written for this KAI, which decide where they speak of it. Raises
    pulumi.RunError where those of others do not fit, before anything is made.
    """
    if "defaultPriorityClasses" in own:
        return {}
    there = {name: existing.at(f"{_PRIORITY_CLASSES}{name}") for name in _PRIORITIES}
    others = {it: by for it, by in there.items() if by and by.get("release") != _OWN_RELEASE}
    if not others:
        return {}
    wrong = [
        f"{name} has {found.get('value'):.0f} in place of {_PRIORITIES[name]}"
        for name, found in others.items()
        if found.get("value") != _PRIORITIES[name]
    ]
    absent = [f"there is no {name}" for name, found in there.items() if not found]
    why = "; ".join(wrong or absent[:1])
    has_switch = not unknown_keys("kai", release.version, _WITHOUT_CLASSES)
    if has_switch and not why:
        return _WITHOUT_CLASSES
    lead = (
        f"kai-fleet:kai: priority classes of KAI ({', '.join(others)}) are in this cluster, made by"
        " others"
    )
    if has_switch:
        raise pulumi.RunError(
            f"{lead}, and do not fit: {why}. Nothing was made. Have their owner make them as KAI"
            " does, or write values: {defaultPriorityClasses: {enabled: false}} to go on with them"
            " as they are"
        )
    raise pulumi.RunError(
        f"{lead}{f' ({why})' if why else ''}, and the chart of {release.version} cannot leave them"
        " out. Nothing was made. Take KAI v0.16.7 or newer, or hand each of them over, such as:"
        f" {_HAND_OVER.format(min(others))}"
    )


def _cluster_policy_crd(name: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """The CRD alone, with no field of it fixed: KAI only watches for objects of the kind."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    # As the API spells it: the SDK's own name of the extension is another one in the state.
    schema: Any = {"openAPIV3Schema": anything}
    crd: pulumi.Resource = kubernetes.apiextensions.v1.CustomResourceDefinition(
        name,
        metadata={"name": _CLUSTER_POLICIES},
        spec={
            "group": "nvidia.com",
            "names": {
                "kind": "ClusterPolicy",
                "list_kind": "ClusterPolicyList",
                "plural": "clusterpolicies",
                "singular": "clusterpolicy",
            },
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": schema,
                    "subresources": {"status": {}},
                }
            ],
        },
        opts=opts,
    )
    return crd
