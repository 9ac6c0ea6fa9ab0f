"""`fleet-probe PROBE [VERB]`: one of the probes in this folder, as the declared commands run it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

PROBES: Final = ("kai", "kind", "pods", "record", "shards", "vacant", "vcluster")


def main() -> None:
    """Run the probe that the first argument names; it reads the others itself."""
    if len(sys.argv) < 2 or sys.argv[1] not in PROBES:
        raise SystemExit(f"fleet-probe: write one of {', '.join(PROBES)}, then its verb")
    probe = sys.argv.pop(1)
    import_module(f"kai_fleet.probes.{probe}").main()


if __name__ == "__main__":
    main()
