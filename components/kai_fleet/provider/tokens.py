"""What the provider serves, by the names that the program and the engine have for it."""

from typing import Final

PACKAGE: Final = "kai-fleet"
QUEUES: Final = "kai-fleet:index:Queues"
SECRET: Final = "kai-fleet:index:secret"
CLUSTER_UID: Final = "kai-fleet:index:clusterUid"
