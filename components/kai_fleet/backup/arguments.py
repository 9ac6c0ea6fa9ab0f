"""The arguments of a vCluster's backups."""

from collections.abc import Mapping
from typing import Required, TypedDict

from pulumi import Input

# What the Jobs of a backup are called, before the name of the vCluster.
BACKUP = "backup"
VERIFY = "verify"
# Label of the CronJobs, their Jobs and pods: BACKUP or VERIFY. The team is in TEAM_LABEL.
LABEL = "kai-fleet/backup"


class VirtualClusterBackupArgs(TypedDict, total=False):
    """Where backups of a vCluster go, and when.

    Namespace and Secret, and the claim, exist before and stay after: nobody who loses a stack loses
    its backups.
    """

    to: Required[str]
    """Where restic keeps them, each vCluster's in a repository of its name below it:
    `s3:https://s3.example.com/bucket`, `gs:BUCKET:/PATH`, `azure:CONTAINER:/PATH`, or `claim/NAME`,
    a PersistentVolumeClaim of `namespace`.
    """
    schedule: str
    """When a backup is taken, as a CronJob has it. Default: `0 */6 * * *`."""
    keep: int
    """How many backups are kept. 0: all, for credentials that cannot delete. Default: 28."""
    namespace: str
    """The namespace of Jobs, Secret and claim, where no account of a team has a right. Default:
    `backups`.
    """
    secret: str
    """The Secret with restic's environment: `RESTIC_PASSWORD`, and credentials such as
    `AWS_ACCESS_KEY_ID`. Default: `kai-fleet-backup`.
    """
    verify: str
    """When all of the repository is read, and a store started on its last backup; "": never.
    Default: `0 4 * * 0`.
    """
    account_annotations: Mapping[str, Input[str]]
    """Annotations of the ServiceAccount, by which a cloud gives it an identity. Default: none."""
    node_selector: Mapping[str, str]
    """Labels of the nodes for the Jobs. Default: all nodes."""
    kubectl_image: str
    """Image with kubectl and a shell. Default: `docker.io/alpine/k8s:1.34.1`."""
    restic_image: str
    """Image of restic. Default: `docker.io/restic/restic:0.18.1`."""
    vcluster_namespace: Input[str]
    """The vCluster's namespace. Default: `team-` and its name. A Team fills in this and what
    follows.
    """
    vcluster_version: str
    """The vCluster's version. Default: that of a VirtualCluster without one."""
    vcluster_image: str
    """The image of its control plane, to start a store in. Default: the open source one of its
    version.
    """
    kubernetes_image: str
    """The image with its Kubernetes, to take kine from. Default: that of its version."""
