"""Print what Pulumi prints of a run, each line once."""

import re

from kai_fleet_cli.display.terminal import engine_line
from kai_fleet_cli.recovery.failures import LEAD

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_TIME = re.compile(r" \((\d+m)?[\d.]+s\)")
# A step that goes on, alone or with a warning or the heading of an error, both of which the
# diagnostics have in full.
_PASSING = re.compile(
    r"[ +~<>=-]*\S+:\S+ \S+ (\w+ing( \w+)? \([\dms]+\)( \[diff: [^]]*\];?)?"
    r"|[\w ]*( \([\dms]+\))? (warning: .*|error: .*:))"
)
# In the diagnostics: what a wait reported, which its step has shown. A line of a step has more
# words before "waiting".
_WAITED = re.compile(r" {4}\w+ \S+: waiting for .*")
_RESOURCE_HEADING = re.compile(r"  \S+:\S+ \(\S+\):")
_LABEL = re.compile(rf"^.*?\b(error|warning): {LEAD.pattern}")
_IS_WARNING = re.compile(r"\bwarning: ")
_SHORTEST = 20  # characters of a message; shorter lines may be printed again


class Output:
    """The lines of a run: each step when it has ended, each warning and each error once.

    A finding of the policy pack is shown where the pack prints it. The heading of a resource is
    shown with the first line below it that is shown.

    Args:
        warned: Warnings that earlier runs printed. This run's are added to the set.
    """

    def __init__(self, warned: set[str]) -> None:
        self._warned = warned
        self._shown = set(warned)
        self._heading = ""

    def show(self, line: str) -> None:
        """Print a line, unless it is repeated or only says that a step goes on."""
        plain = _COLOUR.sub("", line).rstrip()
        if _RESOURCE_HEADING.fullmatch(plain):
            self._heading = line
            return
        if not plain:
            self._heading = ""
        if _PASSING.fullmatch(plain) or _WAITED.fullmatch(plain) or self._is_repeated(plain):
            return
        if self._heading:
            engine_line(self._heading)
            self._heading = ""
        engine_line(line)

    def _is_repeated(self, plain: str) -> bool:
        """Whether a line's words were shown before; if not, note that they are shown now.

        False for a line with neither a label (`error:`, `warning:`), a time, nor a finding. That of
        a finding also counts if it contains words that were shown. Words of at most 20 characters
        are not noted; those of a warning are noted for later runs, too.
        """
        words = _LABEL.sub("", _TIME.sub("", plain)).strip()
        # The line of a finding ends with its rule; the pack has printed only its beginning.
        is_finding = plain.endswith("]")
        has_label = words != plain.strip()
        if words in self._shown and (is_finding or has_label):
            return True
        if is_finding and any(shown in words for shown in self._shown):
            return True
        if len(words) > _SHORTEST:
            self._shown.add(words)
            if _IS_WARNING.search(plain):
                self._warned.add(words)
        return False
