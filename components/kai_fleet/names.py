"""Types of resources, and labels.

This module imports nothing of ours, because each wait starts a Python process that imports it.
"""

RELEASE = "kubernetes:helm.sh/v3:Release"
COMMAND = "command:local:Command"
# Suffix of the name of a Command that runs nothing: it is replaced together with its vCluster, and
# so are the resources that have it in `deleted_with`.
IDENTITY = "-identity"
NAMESPACE = "kubernetes:core/v1:Namespace"
# Sets the stack's labels and annotations on a namespace that existed before the stack.
NAMESPACE_PATCH = "kubernetes:core/v1:NamespacePatch"
POLICY = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
STACK = "pulumi:pulumi:Stack"
# Prefix of the types of providers.
PROVIDERS = "pulumi:providers:"
COMPONENTS = "kai-fleet:index:"  # of the types of our components
TEAM = "kai-fleet:index:Team"
TEAM_NAMESPACE = "kai-fleet:index:TeamNamespace"
KAI_SCHEDULER = "kai-fleet:index:KaiScheduler"
VIRTUAL_CLUSTER = "kai-fleet:index:VirtualCluster"
# The Pulumi package, the resources of its provider, and the provider's functions.
PACKAGE = "kai-fleet"
QUEUES = "kai-fleet:index:Queues"
QUEUE_CHECK = "kai-fleet:index:QueueCheck"
SECRET = "kai-fleet:index:secret"
EXISTING = "kai-fleet:index:existing"
# Labels of a team's namespace: the team, its isolation level, and whether the namespace existed
# before the stack. After an interrupted update the last one tells who created the namespace.
TEAM_LABEL = "kai-fleet/team"
ISOLATION_LABEL = "kai-fleet/isolation"
USED_LABEL = "kai-fleet/namespace"
# Image pull Secrets of a namespace: with the registries of the stack, and with those of a team.
STACK_PULL_SECRET = "kai-fleet-registries"
TEAM_PULL_SECRET = "kai-fleet-team-registries"
# The command `fleet`, as messages print it.
FLEET = ".venv/bin/fleet"
