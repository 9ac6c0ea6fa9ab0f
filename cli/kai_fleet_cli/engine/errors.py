"""The error of an operation of the engine."""

from collections.abc import Iterable

from kai_fleet_cli.errors import UserError


class EngineError(UserError):
    """An update, a preview or a removal that failed, or a stack that cannot be opened.

    Attributes:
        began: A run of the engine had begun to change something.
        teams: The teams for which an update failed, if it is done for all others; else empty.
    """

    def __init__(
        self,
        message: str,
        *,
        began: bool = True,
        teams: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.began = began
        self.teams = tuple(teams)
