"""`python -m provider`: what `pulumi-resource-kai-fleet` runs."""

from __future__ import annotations

import sys

from provider.plugin import engine_address, serve
from provider.queue_plugin import QueuePlugin

serve(QueuePlugin(engine_address(sys.argv[1:])))
