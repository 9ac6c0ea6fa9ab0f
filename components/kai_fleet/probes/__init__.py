"""Small programs that the declared commands run: they wait until a part works, or clean up.

They take everything from their environment, so that no kubeconfig is ever on a command line.
"""

from typing import Final

# Where `fleet-probe` is: in the project's environment, else on PATH, else in that of the plugin
# that `pulumi package add` installed, the newest first. A state holds this text, and no machine's
# own path.
_PLACES: Final = (
    ".venv/bin:venv/bin:$PATH"
    ':$(printf "%s\\n" "${PULUMI_HOME:-$HOME/.pulumi}"/plugins/resource-*/plugin/venv/bin'
    ' | sort -rV | tr "\\n" :)'
)


def command(probe: str, verb: str = "") -> str:
    """The shell command that runs a probe of this folder, on whichever machine."""
    return f'PATH="{_PLACES}" exec fleet-probe {probe} {verb}'.rstrip()


def step(probe: str) -> str:
    """The shell command that runs a probe: of the program's environment, else of PATH."""
    return f'PATH=".venv/bin:venv/bin:$PATH" exec fleet-probe {probe}'
