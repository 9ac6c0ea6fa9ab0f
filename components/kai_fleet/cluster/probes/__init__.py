"""Small programs that the declared commands run: they wait until a part works, or clean up.

They take everything from their environment, so that no kubeconfig is ever on a command line.
"""


def command(probe: str) -> str:
    """The shell command that runs a probe, such as `kai wait`, on whichever machine: from the
    project's environment, else from PATH. A state holds this text, and no machine's own path.
    """
    return f'PATH=".venv/bin:venv/bin:$PATH" exec fleet-probe {probe}'
