"""`fleet-probe PROBE [VERB]`: one of the probes in this folder, as the declared commands run it."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NoReturn

from kai_fleet.cluster.kind import SCRIPTS
from kai_fleet.kube.errors import KubeError, complaint
from kai_fleet.probes import kai, shards, vcluster
from kai_fleet.probes.wait import NotReadyError, say


def _kind(verb: str) -> NoReturn:
    """A kind cluster's script in place of this process; it finds this Python by a variable."""
    # By bash: a file of a wheel is not executable.
    os.execvpe(
        "bash", ["bash", str(SCRIPTS / f"{verb}.sh")], {"KIND_PYTHON": sys.executable, **os.environ}
    )


PROBES: Final[Mapping[str, Callable[[], None]]] = {
    "kai wait": kai.wait,
    "kai clean-up": kai.clean_up,
    "kind create": partial(_kind, "create"),
    "kind delete": partial(_kind, "delete"),
    "shards apply": shards.apply,
    "shards remove": shards.remove,
    "vcluster clean-up": vcluster.clean_up,
    "vcluster wait": vcluster.wait,
}


def main() -> None:
    """Run the probe that the arguments name; exit 1 with one sentence where it fails.

    The API server of a vCluster is its tenant's: what it answers may be no object of Kubernetes'.
    """
    probe = PROBES.get(" ".join(sys.argv[1:]))
    if probe is None:
        raise SystemExit(f"fleet-probe: write one of {', '.join(PROBES)}")
    try:
        probe()
        return
    except NotReadyError as error:
        say(str(error))
    except KubeError as error:
        say(getattr(error, "message", "") or complaint(error))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        say(f"the API server answers what no Kubernetes does ({type(error).__name__})")
    raise SystemExit(1)


if __name__ == "__main__":
    main()
