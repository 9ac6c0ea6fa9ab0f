"""Types of resources and labels, by name. No import of ours: each wait starts a process anew."""

from typing import Final

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
COMMAND: Final = "command:local:Command"
# After the name of a vCluster: of the command that stands for it, and runs nothing.
IDENTITY: Final = "-identity"
NAMESPACE: Final = "kubernetes:core/v1:Namespace"
# The stack's labels and annotations on a namespace that existed before it.
NAMESPACE_PATCH: Final = "kubernetes:core/v1:NamespacePatch"
POLICY: Final = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
STACK: Final = "pulumi:pulumi:Stack"
PROVIDERS: Final = "pulumi:providers:"  # prefix of the types of providers
TEAM: Final = "kai-fleet:index:Team"
TEAM_NAMESPACE: Final = "kai-fleet:index:TeamNamespace"
KAI_SCHEDULER: Final = "kai-fleet:index:KaiScheduler"
VIRTUAL_CLUSTER: Final = "kai-fleet:index:VirtualCluster"
# The package's provider: its resource, and its functions.
PACKAGE: Final = "kai-fleet"
QUEUES: Final = "kai-fleet:index:Queues"
QUEUE_CHECK: Final = "kai-fleet:index:QueueCheck"
SECRET: Final = "kai-fleet:index:secret"
EXISTING: Final = "kai-fleet:index:existing"
# Labels of a team's namespace: whose it is, its level, and that others made it: an update that was
# cut off finds by the last whose the namespace is.
TEAM_LABEL: Final = "kai-fleet/team"
ISOLATION_LABEL: Final = "kai-fleet/isolation"
USED_LABEL: Final = "kai-fleet/namespace"
