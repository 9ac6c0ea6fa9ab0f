"""TeamStackAccess: a ServiceAccount on the host for each team with a stack of its own.

In the team's namespace the account may manage its release and what that leaves, but no quota,
policy or role: the platform binds the vCluster's rights. Cluster-wide it may write only its queues,
on a host with a KAI. RBAC cannot restrict their names, so an admission policy does.
"""

from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.guards.policies import ACCOUNTS, Object, binding, content, declare, policy
from kai_fleet.guards.rights import declare_role, service_account, team_stack_on_host
from kai_fleet.options import after, child_of, component_options
from kai_fleet.releases.queue_bounds import NAME, display_pattern, queue_spec_bounds

IN_NAMESPACE: Final = "kai-fleet-team-stack"  # the ClusterRole inside the team's namespace
_USERS: Final = f"system:serviceaccount:{ACCOUNTS}:"  # begins the names of the accounts


class TeamStackAccess(pulumi.ComponentResource):
    """A ServiceAccount per team, and its rights outside the team's namespace.

    The accounts are in one namespace. Tokens are not declared: `fleet team credentials` requests
    one when needed. Argument `account` of the TeamNamespace binds the rights in the team's
    namespace. Needs Kubernetes 1.30.

    Args:
        teams: by team `parent_queue`, the queue of the host's KAI that is the parent of its queues,
            if it has any; `foreign_queues`, other queues and teams whose names begin with `TEAM-`,
            and a queue of the platform that is named `TEAM`; `shard`, that of the queue, unless it
            is the default one; and `levels`, of queues that KAI schedules from below it, unless
            there is no bound.
    """

    def __init__(
        self,
        name: str,
        teams: Mapping[str, Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kai-fleet:index:TeamStackAccess", name, None, component_options(opts))
        child = child_of(self, opts)
        namespace = core.v1.Namespace(f"{name}-namespace", metadata={"name": ACCOUNTS}, opts=child)
        rules = content("rights")["team_stack_in_namespace"]
        rbac.ClusterRole(f"{name}-role", metadata={"name": IN_NAMESPACE}, rules=rules, opts=child)
        in_namespace = after(child, namespace)
        specs = list[pulumi.Resource]()
        if any(account.get("parent_queue") is not None for account in teams.values()):
            body = queue_specs_policy()
            bound = binding(body["metadata"]["name"], body["metadata"]["name"])
            specs = declare(name, {"specs": body}, {"specs-binding": bound}, in_namespace)
        for team, account in teams.items():
            part, parent_queue = f"{name}-{team}", account.get("parent_queue")
            metadata: Any = {"name": team, "namespace": ACCOUNTS}
            before: list[pulumi.Resource] = [
                core.v1.ServiceAccount(f"{part}-account", metadata=metadata, opts=in_namespace)
            ]
            if parent_queue is not None:
                # Created before the rights that it restricts, and deleted after them.
                bounds, bound = queue_bounds(team, account)
                before += declare(part, {"bounds": bounds}, {"bounds-binding": bound}, in_namespace)
                before += specs
            on_host = team_stack_on_host(team, host_mode=parent_queue is not None)
            role, subject = {"name": f"{IN_NAMESPACE}-{team}"}, service_account(team, ACCOUNTS)
            declare_role(part, role, on_host, subject, after(in_namespace, *before))
        self.register_outputs({"namespace": ACCOUNTS})


def queue_bounds(team: str, account: Mapping[str, Any]) -> tuple[Object, Object]:
    """The policy that restricts which queues a team's account writes, and its binding. The bounds
    are in the policy, as queues have no namespace with annotations.
    """
    bounds = {
        "team": team,
        "parentQueue": account["parent_queue"],
        "foreignQueues": ",".join(sorted(account.get("foreign_queues", ()))),
        "shard": account.get("shard", ""),
        "levels": str(account.get("levels", "")),
        "name": str(NAME),
        "display": display_pattern(team),
    }
    body, name = policy("team-stack-queues", "", bounds), f"{IN_NAMESPACE}-{team}"
    body["metadata"]["name"] = name
    for condition in body["spec"]["matchConditions"]:
        condition["expression"] = condition["expression"].replace("ACCOUNT", f"{_USERS}{team}")
    return body, binding(name, name)


def queue_specs_policy() -> Object:
    """The policy of the specs of queues, for the accounts of all team stacks: what others write on
    a host is theirs.
    """
    body = policy("queue-specs", "", queue_spec_bounds())
    of_accounts = f"request.userInfo.username.startsWith('{_USERS}')"
    condition = {"name": "the-account-of-a-team", "expression": of_accounts}
    body["spec"]["matchConditions"].append(condition)
    return body
