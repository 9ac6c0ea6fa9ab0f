"""Traffic: what is made in a team's namespace leads to no other team's pods (T6, T7)."""

from __future__ import annotations

from typing import Final

from kai_fleet.components.guard.queue_guard_rules import text
from kai_fleet.components.isolation.rules.model import HostRules, by_controllers

# Annotations of Multus: a second interface of a pod, which no NetworkPolicy is about.
ATTACHMENT: Final = "^(k8s[.]v1[.]cni[.]cncf[.]io/networks|v1[.]multus-cni[.]io/default-network)$"
# Addresses of pods, nodes and services, and those where clouds give out credentials. Kubernetes
# 1.30 stores no expression with its functions for networks yet.
_PRIVATE: Final = (
    "^(0|10|127)[.]|^192[.]168[.]|^172[.](1[6-9]|2[0-9]|3[01])[.]|^169[.]254[.]|^198[.]1[89][.]"
    "|^100[.](6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])[.]|^2[45][0-9][.]|^168[.]63[.]129[.]16$"
    "|^([fF][cCdD]|[fF][eE][89abAB])|^::"
)
# Names that the host's DNS answers with an address of its own.
_INSIDE: Final = "(^|[.])svc([.]|$)|[.](local|internal)[.]?$|^[^.]*$|^[0-9a-fA-F.:]+$"


def of_pods(rules: HostRules) -> list[tuple[str, str]]:
    """What holds for a pod, with the sentence for one for which it does not."""
    if rules.attachments:
        return []
    return [
        (
            f"!variables.annotations.exists(k, k.matches({text(ATTACHMENT)}))",
            "' joins another network by an annotation of Multus, past the network policies; drop"
            " it, or have the platform write isolation.network.attachments: true'",
        )
    ]


def of_services(rules: HostRules) -> list[tuple[str, str]]:
    """What holds for Services, and for what stands behind those without a selector."""
    found = [
        (
            "request.resource.resource != 'services'"
            " || size(variables.o.spec.?externalIPs.orValue([])) == 0",
            "' has externalIPs, by which it could take the traffic of others; use a Service of type"
            " LoadBalancer'",
        ),
        (
            "request.resource.resource != 'services'"
            " || variables.o.spec.?type.orValue('') != 'ExternalName'"
            f" || !variables.o.spec.?externalName.orValue('').matches({text(_INSIDE)})",
            "' has an externalName of this cluster, by which an ingress controller would reach"
            " others for it; write a name from outside, or a Service with a selector'",
        ),
    ]
    if not rules.endpoints:
        found.append(
            (
                "!(request.resource.resource in ['endpoints', 'endpointslices'])"
                f" || {by_controllers()} || ({_public()})",
                "' names addresses that are not public, pods of other teams may have them; write a"
                " Service with a selector, or have the platform write isolation.network.endpoints:"
                " true'",
            )
        )
    return found


def _public() -> str:
    """Whether every address of an Endpoints or EndpointSlice object is a public one, in CEL."""
    subset = "(s.?addresses.orValue([]) + s.?notReadyAddresses.orValue([]))"
    return (
        f"variables.o.?subsets.orValue([]).all(s, {subset}.all(a, !a.ip.matches({text(_PRIVATE)})))"
        " && variables.o.?endpoints.orValue([]).all(e, e.addresses.all(a,"
        f" !a.matches({text(_PRIVATE)})))"
    )
