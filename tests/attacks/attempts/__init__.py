"""What a tenant would try. A new attack is one entry: what, by whom, and the remedy it is told."""

from tests.attacks.attempts.attempt import EVERY_MODE, STACKS, TENANTS, Attempt
from tests.attacks.attempts.bounds import BOUNDS
from tests.attacks.attempts.control import CONTROL
from tests.attacks.attempts.counted import COUNTED
from tests.attacks.attempts.gpus import GPUS
from tests.attacks.attempts.kept import KEPT
from tests.attacks.attempts.pods import PODS
from tests.attacks.attempts.reach import REACH
from tests.attacks.attempts.releases import RELEASES
from tests.attacks.attempts.restricted import RESTRICTED_ATTEMPTS
from tests.attacks.attempts.spellings import SPELLINGS
from tests.attacks.attempts.status import STATUS
from tests.attacks.attempts.templates import TEMPLATES

ATTEMPTS = [
    *PODS,
    *GPUS,
    *REACH,
    *KEPT,
    *RESTRICTED_ATTEMPTS,
    *RELEASES,
    *STATUS,
    *BOUNDS,
    *CONTROL,
    *SPELLINGS,
    *COUNTED,
    *TEMPLATES,
]

__all__ = ["ATTEMPTS", "EVERY_MODE", "STACKS", "TENANTS", "Attempt"]
