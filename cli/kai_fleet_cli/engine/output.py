"""What Pulumi prints of a run, without what it prints again."""

import re
from typing import Final

from kai_fleet_cli.display.terminal import engine_line
from kai_fleet_cli.recovery.failures import LEAD

_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_TIME: Final = re.compile(r" \((\d+m)?[\d.]+s\)")
# A step that goes on; in it a warning, or an error's heading, which the diagnostics have whole.
_PASSING: Final = re.compile(
    r"[ +~<>=-]*\S+:\S+ \S+ (\w+ing( \w+)? \([\dms]+\)( \[diff: [^]]*\];?)?"
    r"|[\w ]*( \([\dms]+\))? (warning: .*|error: .*:))"
)
# In the diagnostics: what a wait reported, which its step has shown. Steps begin with more words.
_WAITED: Final = re.compile(r" {4}\w+ \S+: waiting for .*")
_OF_RESOURCE: Final = re.compile(r"  \S+:\S+ \(\S+\):")
_LABEL: Final = re.compile(rf"^.*?\b(error|warning): {LEAD.pattern}")
_IS_WARNING: Final = re.compile(r"\bwarning: ")
_SHORTEST: Final = 20  # characters; a shorter line is no message, and may come again


class Output:
    """The lines of a run: a step when it is done, each warning and each error once.

    A finding of the policy pack is shown where the pack prints it, the heading of a resource with
    what follows it.

    Args:
        warned: The warnings of the command's runs before; those of this one are added.
    """

    def __init__(self, warned: set[str]) -> None:
        self._warned = warned
        self._shown = set(warned)
        self._heading = ""

    def show(self, line: str) -> None:
        """Print a line, unless it is repeated or says only that something goes on."""
        plain = _COLOUR.sub("", line).rstrip()
        if _OF_RESOURCE.fullmatch(plain):
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
        """Whether the words of a line were shown; from now on they were."""
        words = _LABEL.sub("", _TIME.sub("", plain)).strip()
        # A finding ends in its rule, and the pack has printed a part of it.
        is_finding = plain.endswith("]")
        if words in self._shown and (is_finding or words != plain.strip()):
            return True
        if is_finding and any(each in words for each in self._shown):
            return True
        if len(words) > _SHORTEST:
            self._shown.add(words)
            if _IS_WARNING.search(plain):
                self._warned.add(words)
        return False
