"""The schedule of a CronJob, as far as its period."""

_DAY = 24


def hours_between(schedule: str) -> int:
    """An upper bound of the hours between two runs: 6 for `0 */6 * * *`, 168 for `0 4 * * 0`.

    A list of hours counts as a day, weekdays as a week, other days as a month. Raises
    ValueError for another number of fields, or another step of hours than a number.
    """
    _, hour, day, month, weekday = schedule.split()
    if day != "*" or month != "*":
        return 31 * _DAY
    if weekday != "*":
        return 7 * _DAY
    if hour.startswith("*"):
        return int(hour.partition("/")[2] or 1)
    return _DAY
