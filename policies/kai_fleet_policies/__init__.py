"""What is allowed: rules about queues, workloads, namespaces, teams and versions."""

from pathlib import Path


def policy_pack() -> Path:
    """The folder of the policy pack: `pulumi preview --policy-pack FOLDER` in any project."""
    return Path(__file__).resolve().parent / "pack"
