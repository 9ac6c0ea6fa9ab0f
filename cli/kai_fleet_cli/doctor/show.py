"""The findings on a terminal: each thing that is not well with its cure, the others counted."""

from rich.console import Console
from rich.text import Text

from kai_fleet_cli.display.wrapping import told
from kai_fleet_cli.doctor.diagnosis import Diagnosis
from kubectl_fleet.live.finding import Health
from kubectl_fleet.wording import counted

_STYLE = {Health.BROKEN: "red", Health.WARNING: "yellow"}


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print what one run found, what is broken first."""
    ill = [finding for finding in diagnosis.findings if finding.health is not Health.OK]
    for finding in sorted(ill, key=lambda each: each.health is Health.WARNING):
        lead = Text.assemble((finding.health.value, _STYLE[finding.health]), f" {finding.cluster}:")
        told(console, finding.subject, lead, indent=4)
        told(console, finding.cause, "    ", indent=4)
        if finding.fix:
            told(console, finding.fix, "  →", indent=4)
    if ill:
        console.print()
    console.print(_sentence(diagnosis), markup=False, highlight=False, soft_wrap=True)


def _sentence(diagnosis: Diagnosis) -> str:
    what = f"stack {diagnosis.stack}" if diagnosis.stack else "the cluster"
    if diagnosis.blind:
        return f"{what} could not be looked at"
    well, warned, broken = map(diagnosis.count, (Health.OK, Health.WARNING, Health.BROKEN))
    names = sorted({it.check for it in diagnosis.findings if it.health is Health.OK})
    healthy = f"{counted(well, 'check')} passed ({', '.join(names)})"
    healthy = healthy if well else "no check passed"
    warnings = counted(warned, "warning")
    if broken:
        return f"{what}: {broken} broken, {warnings}; {healthy}"
    if diagnosis.unread:
        unread = " and ".join(diagnosis.unread)
        return f"{what} is not known to be healthy: nothing of {unread} may be read; {healthy}"
    if warned:
        return f"{what} works, with {warnings}; {healthy}"
    return f"{what} is healthy: {healthy}"
