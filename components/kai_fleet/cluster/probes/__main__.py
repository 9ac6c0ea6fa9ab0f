"""`fleet-probe PROBE VERB`: run one of the probes in this folder, as the declared commands do."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial

from kai_fleet.cluster.kind import SCRIPTS
from kai_fleet.cluster.kube.errors import KubeError, complaint
from kai_fleet.cluster.kube.objects import MALFORMED, malformed
from kai_fleet.cluster.probes import kai, vcluster
from kai_fleet.cluster.probes.wait import (
    HOST_FAILED,
    HostFailedError,
    NotReadyError,
    cluster,
    say,
    variable,
)


def _kind(verb: str) -> None:
    """Replace this process by a script for kind clusters: `create` or `delete`.

    The script finds Python in KIND_PYTHON, which is this one unless the environment has another.
    """
    # With bash: files in a wheel are not executable.
    command = ["bash", str(SCRIPTS / f"{verb}.sh")]
    os.execvpe(command[0], command, {"KIND_PYTHON": sys.executable, **os.environ})


PROBES: Mapping[str, Callable[[], None]] = {
    "kai wait": kai.wait,
    "kai clean-up": kai.clean_up,
    "kind create": partial(_kind, "create"),
    "kind delete": partial(_kind, "delete"),
    "shards apply": lambda: kai.set_fields(cluster(), json.loads(variable("KAI_OBJECTS"))),
    "shards remove": kai.remove_fields,
    "vcluster clean-up": vcluster.clean_up,
    "vcluster grow": vcluster.grow,
    "vcluster wait": vcluster.wait,
}


def main() -> None:
    """Run the probe that the arguments name. If it fails, print one sentence and exit with 1.

    Exit with HOST_FAILED if the host's API server has failed for too long.
    """
    probe = PROBES.get(" ".join(sys.argv[1:]))
    if probe is None:
        raise SystemExit(f"fleet-probe: write one of {', '.join(PROBES)}")
    try:
        probe()
    except HostFailedError as error:
        say(str(error))
        raise SystemExit(HOST_FAILED) from None
    except NotReadyError as error:
        raise SystemExit(str(error)) from None
    except KubeError as error:
        raise SystemExit(complaint(error)) from None
    except MALFORMED as error:  # the API server of a vCluster is its tenant's
        raise SystemExit(malformed(error)) from None


if __name__ == "__main__":
    main()
