"""What a run waits for: one line that changes on a terminal, and news alone in a log.

The steps that wait for a vCluster or a KAI say so every few seconds, many of them at once.
"""

import re
from collections.abc import Callable
from typing import Final

from kubectl_fleet.wording import counted

# As `probes/wait.py` writes it.
_WAITS: Final = re.compile(r"(?P<what>.+): waiting for (?P<left>.+) \((?P<seconds>\d+) s\)")


class Waiting:
    """Takes the lines of steps that wait. `passing` shows a line in place of the last one; None
    where lines stay, as in a log: there one is shown for what is new, or takes twice as long.
    """

    def __init__(self, show: Callable[[str], None], passing: Callable[[str], None] | None) -> None:
        self._show, self._passing = show, passing
        self._left: dict[str, tuple[str, int]] = {}
        self._lines: dict[str, str] = {}

    def hear(self, step: str, line: str, lead: str) -> bool:
        """Whether the line is one of a step that waits; it is shown then as far as it is news."""
        found = _WAITS.fullmatch(line)
        if found is None:
            self.ended(step)
            return False
        left, seconds = found["left"], int(found["seconds"])
        self._lines.pop(step, None)  # the newest is the last
        self._lines[step] = f"{lead.strip()} {line}".strip()
        if self._passing is not None:
            self._change(self._passing)
            return True
        before, since = self._left.get(step, ("", 0))
        if left != before or seconds >= 2 * since:
            self._left[step] = left, seconds
            self._show(f"{lead}{line}")
        return True

    def ended(self, step: str) -> None:
        """The step says something else, or is done."""
        self._left.pop(step, None)
        if self._lines.pop(step, None) is not None and self._passing is not None:
            self._change(self._passing)

    def _change(self, passing: Callable[[str], None]) -> None:
        number, last = len(self._lines), next(reversed(self._lines.values()), "")
        many = f"{counted(number, 'step', 'waits')}; " if number > 1 else ""
        passing(f"  {many}{last}" if last else "")

    def clear(self) -> None:
        """The run is over: nothing waits."""
        for step in [*self._lines]:
            self.ended(step)
