"""Time stamps of Kubernetes."""

from datetime import datetime


def seconds_since(stamp: object, now: datetime) -> float:
    """Seconds from a Kubernetes time stamp until `now`, negative for a later one.

    0 if `moment` cannot read the stamp.
    """
    return (now - (moment(stamp) or now)).total_seconds()


def moment(stamp: object) -> datetime | None:
    """A Kubernetes time stamp; None for one without a time zone, or that Python cannot read.

    API servers accept the year 0, which Python has not.
    """
    try:
        time = datetime.fromisoformat(str(stamp))
    except ValueError:
        return None
    return time if time.tzinfo else None
