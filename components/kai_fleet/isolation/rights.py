"""Rights of accounts on a host: those of a vCluster, and those of a team stack.

We create the vCluster's roles ourselves. Those of its chart depend on values and version, whoever
installs the chart must hold every right that it grants, and several versions grant `nodes/proxy`,
which reaches into every pod of a node. On the host ours only read. In the team's namespace each
right is there because the source of that version uses it; docs/isolation.md says what bounds it.
`tests/unit/components/isolation/test_vcluster_role.py` compares the rights with the chart of each
version.
"""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.declaring.inputs import resolved
from kai_fleet.declaring.options import depending_on
from kai_fleet.isolation.bounds import Text, scheduler
from kai_fleet.isolation.namespace_args import TeamNamespaceArgs
from kai_fleet.isolation.policies import content
from kai_fleet.releases import minor_line
from kai_fleet.values import value_at

VCLUSTER = "kai-fleet-vcluster"  # a vCluster's Role and its binding
Rule = rbac.PolicyRuleArgsDict
GROUP = "rbac.authorization.k8s.io"
Right = Mapping[str, Any]  # a rule of rights.yaml, with the conditions on which a vCluster gets it
_ANY_MINOR = 1_000  # newer than every minor version of vCluster


def vcluster_on_host(args: TeamNamespaceArgs) -> list[Rule]:
    """The rules of the vCluster's ClusterRole: it reads classes of all kinds.

    If the team's scheduler is inside, it also reads nodes and what runs on them.
    """
    rights = content("rights")
    rules: list[Rule] = list(rights["vcluster_on_host"])
    if scheduler(args) == "inside":
        rules += rights["vcluster_with_scheduler"]
    return rules


def vcluster_in_namespace(team: str, args: TeamNamespaceArgs) -> pulumi.Input[list[Rule]]:
    """The rules of the vCluster's Role in the team's namespace.

    Without `vcluster_version` they are the rules of all versions. If `vcluster_values` are absent,
    too, as for a team with a stack of its own, the values are unknown: then the rules allow every
    object that a vCluster may sync without a grant of the platform. A version without values has
    none set. Raises IndexError for a plain version without a minor number.
    """
    return resolved(_in_namespace, team, args.get("vcluster_version"), args.get("vcluster_values"))


def team_stack_on_host(team: str, *, host_mode: bool) -> list[Rule]:
    """The rules of a team stack's account outside the team's namespace.

    It reads nodes, and the team's namespace `team-TEAM` itself. `host_mode`: the team has queues on
    the host, which it may write.
    """
    rights = content("rights")
    granted: list[Right] = list(rights["team_stack_on_host"])
    if host_mode:
        granted += rights["team_stack_queues"]
    return [_rule(right, team) for right in granted]


def _in_namespace(
    team: str,
    version: str | None,
    values: Mapping[str, object] | None,
) -> list[Rule]:
    """The rules of a vCluster's Role. Without a version `values` may be None: they are unknown.

    A version without values has none set. Raises IndexError for a version without a minor number.
    """
    minor = _ANY_MINOR
    if version is not None:
        minor = minor_line(version)[1]
        values = values or {}
    return [
        _rule(right, team)
        for right in content("rights")["vcluster_in_namespace"]
        if minor >= right.get("since", 0) and _is_granted(right, values)
    ]


def _is_granted(right: Right, values: Mapping[str, object] | None) -> bool:
    """Whether a vCluster with these chart values gets a right; None: the values are unknown.

    It does not if the value at `unless` is false, the boolean and not the text. If the right has
    `when`, one of the values there has to be on, or the values unknown and the right `unasked`.
    """
    if "unless" in right and value_at(values, right["unless"]) is False:
        return False
    if "when" not in right:
        return True
    if values is None and right.get("unasked"):
        return True
    return any(_is_on(value_at(values, key)) for key in right["when"])


def _is_on(value: object) -> bool:
    """Whether a chart value switches a feature on: true, or a number, of replicas, above one.

    The text "true" does, too. Programs in other languages have floats.
    """
    if value is True or value == "true":
        return True
    return isinstance(value, int | float) and value > 1


def _rule(right: Right, team: str) -> Rule:
    """The rule of a right, without its conditions and with the team's name in place of TEAM."""
    rule: Rule = {
        "api_groups": right["api_groups"],
        "resources": right["resources"],
        "verbs": right["verbs"],
    }
    if "resource_names" in right:
        rule["resource_names"] = [name.replace("TEAM", team) for name in right["resource_names"]]
    return rule


def declare_role(
    name: str,
    role_name: Text,
    rules: pulumi.Input[list[Rule]],
    subject: rbac.SubjectArgsDict,
    opts: pulumi.ResourceOptions,
    namespace: Text | None = None,
) -> list[pulumi.Resource]:
    """Declare a role with these rules, and a binding that gives it to a subject.

    They are a Role and a RoleBinding in the namespace; without one a ClusterRole and a
    ClusterRoleBinding. Both are called `role_name`; `name` is the prefix of the resources' names.
    """
    metadata: meta.ObjectMetaArgsDict = {"name": role_name}
    role_type: type[rbac.Role | rbac.ClusterRole] = rbac.ClusterRole
    binding_type: type[rbac.RoleBinding | rbac.ClusterRoleBinding] = rbac.ClusterRoleBinding
    if namespace is not None:
        metadata["namespace"] = namespace
        role_type = rbac.Role
        binding_type = rbac.RoleBinding
    # v0.4.0 called a Role so. As another resource it would be deleted after it was made anew.
    renamed = pulumi.ResourceOptions(aliases=[pulumi.Alias(name=name)])
    role = role_type(
        f"{name}-role",
        metadata=metadata,
        rules=rules,
        opts=pulumi.ResourceOptions.merge(opts, renamed),
    )
    binding = binding_type(
        f"{name}-binding",
        metadata=metadata,
        role_ref=role_ref(role_type.__name__, role_name),
        subjects=[subject],
        opts=depending_on(opts, role),
    )
    return [role, binding]


def role_ref(kind: str, name: Text) -> rbac.RoleRefArgsDict:
    """The role that a binding names; `kind` is Role or ClusterRole."""
    return {"api_group": GROUP, "kind": kind, "name": name}


def service_account(name: str, namespace: Text) -> rbac.SubjectArgsDict:
    """A ServiceAccount as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
