"""Small programs that the declared commands run: they wait until a part works, or clean up.

They take everything from their environment, so that no kubeconfig is ever on a command line.
"""
