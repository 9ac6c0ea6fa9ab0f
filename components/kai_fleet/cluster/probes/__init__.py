"""Programs that the declared commands run: they wait until a component works, or clean up.

They read everything from the environment, so that no kubeconfig is ever on a command line.
"""


def command(probe: str) -> str:
    """The shell command that runs a probe, such as `kai wait`.

    It finds the program in the project's virtual environment, else in PATH: the state of a stack
    holds this text, and has to work on any machine.
    """
    return f'PATH=".venv/bin:venv/bin:$PATH" exec fleet-probe {probe}'
