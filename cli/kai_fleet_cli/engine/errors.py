"""The error of an operation of the engine."""

from collections.abc import Iterable

from kai_fleet_cli.errors import UserError


class EngineError(UserError):
    """An update, a preview or a removal that failed; the engine's output above says why.

    Attributes:
        began: The operation had begun to change something.
        teams: The teams for which it failed, if everything else is as declared; else empty.
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
