"""`fleet releases`: the versions known here."""

from collections.abc import Mapping

from kai_fleet import releases as known
from kai_fleet_cli.commands.options import AsJson, print_json
from kai_fleet_cli.display.terminal import result


def releases(as_json: AsJson = False) -> None:
    """The versions of KAI and vCluster that are known here, and how long each gets fixes."""
    if as_json:
        print_json({"known": {"KAI": list(known.KAI), "vCluster": list(known.VCLUSTER)}})
        return
    for version in (*known.KAI, known.RETRACTED):
        words = f"{known.support(known.KAI, version).words}{_caveat(known.KAI, version)}"
        result(f"KAI {version:<9} {words}")
    for version in known.VCLUSTER:
        words = f"{known.support(known.VCLUSTER, version).words}{_caveat(known.VCLUSTER, version)}"
        default = "; what a stack gets that names none" * (version == known.DEFAULT_VCLUSTER)
        result(f"vCluster {version:<9} {words}{default}")
    result("A newer version of either can be tried with untested: true beside its version.")


def _caveat(table: Mapping[str, known.KaiRelease | known.VclusterRelease], version: str) -> str:
    caveat = table[version].caveat if version in table else ""
    return caveat and f"; not advised: {caveat}"
