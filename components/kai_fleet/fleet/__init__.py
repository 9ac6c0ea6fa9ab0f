"""The one model of a fleet: what a stack file means, every default filled in, each value's key.

`resolve.fleet_of` makes it, of a platform's stack or of a team's own. Components declare it, rules
judge it, and the doctor, the report and the plan hold what they see against it.
"""
