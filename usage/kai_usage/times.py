"""Time stamps of Kubernetes."""

from datetime import datetime


def seconds_since(stamp: object, now: datetime) -> float:
    """Seconds from a Kubernetes time stamp until `now`, negative for a later one.

    0 if `moment` gives None for the stamp. Raises TypeError if `now` has no time zone.
    """
    return (now - (moment(stamp) or now)).total_seconds()


def moment(stamp: object) -> datetime | None:
    """Read a Kubernetes time stamp; None if it has no time zone, or Python cannot read it.

    API servers accept the year 0, which Python has not.
    """
    try:
        time = datetime.fromisoformat(str(stamp))
    except ValueError:
        return None
    return time if time.tzinfo else None
