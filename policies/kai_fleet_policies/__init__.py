"""What is allowed: rules about queues, workloads, namespaces, teams and versions."""

from importlib import metadata
from pathlib import Path


def policy_pack_program() -> Path:
    """The policy pack as a program of the environment that this is installed in.

    `pulumi preview --policy-pack PROGRAM` needs no language host.
    """
    for file in metadata.files("kai-fleet-policies") or ():
        if file.name == "kai-fleet-policy-pack":
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError("kai-fleet-policies is not installed; in a checkout: make setup")
