"""The one error of the sandbox that is meant for its user."""


class SandboxError(RuntimeError):
    """Something a person can act on: the text says what is wrong, where, and what to do."""
