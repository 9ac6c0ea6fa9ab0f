"""Types of resources, and labels.

This module imports nothing of ours, because each wait starts a Python process that imports it.
"""

from typing import Final

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
COMMAND: Final = "command:local:Command"
# Suffix of the name of a Command that runs nothing: it is replaced together with its vCluster, and
# so are the resources that have it in `deleted_with`.
IDENTITY: Final = "-identity"
NAMESPACE: Final = "kubernetes:core/v1:Namespace"
# Sets the stack's labels and annotations on a namespace that existed before the stack.
NAMESPACE_PATCH: Final = "kubernetes:core/v1:NamespacePatch"
POLICY: Final = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
STACK: Final = "pulumi:pulumi:Stack"
# Prefix of the types of providers.
PROVIDERS: Final = "pulumi:providers:"
COMPONENTS: Final = "kai-fleet:index:"  # of the types of our components
TEAM: Final = "kai-fleet:index:Team"
TEAM_NAMESPACE: Final = "kai-fleet:index:TeamNamespace"
KAI_SCHEDULER: Final = "kai-fleet:index:KaiScheduler"
VIRTUAL_CLUSTER: Final = "kai-fleet:index:VirtualCluster"
VIRTUAL_CLUSTER_BACKUP: Final = "kai-fleet:index:VirtualClusterBackup"
# The Pulumi package, the resources of its provider, and the provider's functions.
PACKAGE: Final = "kai-fleet"
QUEUES: Final = "kai-fleet:index:Queues"
QUEUE_CHECK: Final = "kai-fleet:index:QueueCheck"
SECRET: Final = "kai-fleet:index:secret"
EXISTING: Final = "kai-fleet:index:existing"
# Labels of a team's namespace: the team, its isolation level, and whether the namespace existed
# before the stack. After an interrupted update the last one tells who created the namespace.
TEAM_LABEL: Final = "kai-fleet/team"
ISOLATION_LABEL: Final = "kai-fleet/isolation"
USED_LABEL: Final = "kai-fleet/namespace"
# Image pull Secrets of a namespace: with the registries of the stack, and with those of a team.
STACK_PULL_SECRET: Final = "kai-fleet-registries"
TEAM_PULL_SECRET: Final = "kai-fleet-team-registries"
# The command `fleet`, as messages print it.
FLEET: Final = ".venv/bin/fleet"
