"""The ValidatingAdmissionPolicies of a host cluster, declared once for all teams."""

from typing import NotRequired, TypedDict


class HostGuardsArgs(TypedDict):
    """What the policies have to know of the host."""

    host_kai: NotRequired[bool]
    """The host has a KAI, whose queues and priorities are guarded too. Default: false."""
