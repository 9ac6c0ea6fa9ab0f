"""What is allowed: rules about queues, workloads, namespaces, teams and versions."""

import sysconfig
from pathlib import Path


def policy_pack_program() -> Path:
    """The policy pack as a program of the environment that this is installed in.

    `pulumi preview --policy-pack PROGRAM` needs no language host.
    """
    return Path(sysconfig.get_path("scripts"), "kai-fleet-policy-pack")
