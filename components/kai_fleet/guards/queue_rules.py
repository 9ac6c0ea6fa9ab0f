"""What one team's pods may ask of KAI, as the bounds that the policy of queues reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kai_fleet.guards.policies import AUDIT, DENY, WARN, Object, binding, policy, policy_name
from kai_fleet.wording import listed

if TYPE_CHECKING:
    from kai_fleet.settings.sections.isolation import GuardMode, OutsideQueues

# A denial is read by a person: of many queues it names the first.
_QUEUES_IN_A_MESSAGE: Final = 12
_EVERY: Final = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]}
PODS: Final = {"resourceRules": [{**_EVERY, "resources": ["pods"]}]}
# What makes pods: whoever applies it is warned, for its pods are going to be judged.
TEMPLATES: Final = {"excludeResourceRules": [{**_EVERY, "resources": ["pods"]}]}


@dataclass(frozen=True)
class QueueRules:
    """`queues` are the team's leaf queues. `mode` is `deny`, or `audit` for roll-out: pods pass,
    with a warning to whoever makes them and an entry in the API server's audit log. Queues whose
    names begin with `prefix` are the team's, too, but for the `foreign` ones. `pod_groups`: a pod
    may name a PodGroup in place of a queue; only where every queue is the team's, for a PodGroup
    may have any. `outside` is what happens to pods that ask for `gpu_resource` and not for KAI,
    which run beside the queues.
    """

    team: str
    queues: Sequence[str]
    mode: GuardMode = "deny"
    gpu_sharing: bool = True
    prefix: str | None = None
    foreign: Sequence[str] = ()
    pod_groups: bool = False
    outside: OutsideQueues = "allow"
    gpu_resource: str = "nvidia.com/gpu"

    @property
    def suffix(self) -> str:
        """Of the policies of a guard of its own."""
        return f"-{self.team}"

    def parameters(self) -> dict[str, str]:
        """The bounds of the team's pods."""
        # Sorted: the engine hands a program its queues in another order than the file has them.
        queues = sorted(self.queues)
        allowed = listed(queues, limit=_QUEUES_IN_A_MESSAGE)
        allowed = allowed or "none: the team has no leaf queue"
        if self.prefix:
            allowed += f", or a queue named {self.prefix}…"
        bounds = {
            "team": self.team,
            "queues": ",".join(queues),
            "allowed": allowed,
            "queuePrefix": self.prefix or "",
            "foreignQueues": ",".join(sorted(self.foreign)),
            "podGroups": "true" if self.pod_groups else "",
            "sharing": "true" if self.gpu_sharing else "false",
            "become": "denied" if self.mode == "deny" else "warned about",
            "gpuResource": self.gpu_resource,
        }
        return {key: value for key, value in bounds.items() if value}

    def bindings(self, suffix: str = "", namespace: Any = None) -> dict[str, Object]:
        """The bindings by the last part of their resources' names."""
        team, queues = self.team, policy_name("queues", suffix)
        act = DENY if self.mode == "deny" else AUDIT
        bindings = {
            "binding": binding(
                f"kai-fleet-queues-{team}", queues, actions=act, match=PODS, namespace=namespace
            ),
            "templates-binding": binding(
                f"kai-fleet-templates-{team}",
                queues,
                actions=WARN,
                match=TEMPLATES,
                namespace=namespace,
            ),
        }
        if self.outside != "allow":
            bindings["outside-binding"] = binding(
                f"kai-fleet-outside-queues-{team}",
                policy_name("outside-queues", suffix),
                actions=DENY if self.outside == "deny" else AUDIT,
                namespace=namespace,
            )
        return bindings

    def policies(self, suffix: str) -> dict[str, Object]:
        """The policies of a guard of its own, with the bounds in them, as the bindings."""
        bounds = self.parameters()
        of_gpus = {key: bounds.pop(key) for key in ("team", "gpuResource")}
        bounds["team"] = self.team
        policies = {"policy": policy("queues", suffix, bounds)}
        if self.outside != "allow":
            policies["outside-policy"] = policy("outside-queues", suffix, of_gpus)
        return policies


def inside_vcluster(rules: QueueRules) -> list[Object]:
    """Every object of the guard in a cluster that is the team's own."""
    return [*rules.policies(rules.suffix).values(), *rules.bindings(rules.suffix).values()]
