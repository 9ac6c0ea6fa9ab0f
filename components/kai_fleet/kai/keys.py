"""What KAI reads: as `kai_fleet.releases.keys`, for who imports it from here still."""

from __future__ import annotations

from kai_fleet.releases.keys import CONTAINER as CONTAINER
from kai_fleet.releases.keys import DEVICES as DEVICES
from kai_fleet.releases.keys import FRACTION as FRACTION
from kai_fleet.releases.keys import GPU_RESOURCES as GPU_RESOURCES
from kai_fleet.releases.keys import KAI_NAMESPACE as KAI_NAMESPACE
from kai_fleet.releases.keys import MEMORY as MEMORY
from kai_fleet.releases.keys import MPS as MPS
from kai_fleet.releases.keys import POD_GROUP as POD_GROUP
from kai_fleet.releases.keys import QUEUE_LABEL as QUEUE_LABEL
from kai_fleet.releases.keys import RESERVED as RESERVED
from kai_fleet.releases.keys import SCHEDULER as SCHEDULER
from kai_fleet.releases.keys import look_alike_pattern as look_alike_pattern
from kai_fleet.releases.keys import meant as meant
from kai_fleet.releases.keys import right_key as right_key
