"""The last changes of a stack: what Pulumi's history keeps of each update, and of its versions."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Final, TypeAlias

from kai_fleet.fleet.model import HOST
from kai_fleet_cli.engine.targeting import was_about
from kai_fleet_cli.report.model import StackUpdate
from kai_fleet_cli.teams import stack_state
from kubectl_fleet.declared.unknown import pairs

_SHOWN: Final = 10
_READ: Final = 20  # the older ones tell from what the shown ones changed it
_SHORT: Final = 8  # of a commit
_OPERATIONS: Final = ("create", "update", "delete", "replace")
# By team, or the host: what runs there, and its version.
Versions: TypeAlias = dict[str, dict[str, str]]
_NOTHING: Final[Versions] = {HOST: {"KAI": "none"}}


def last_changes(stack: str, variables: Mapping[str, str]) -> list[StackUpdate]:
    """A stack's newest updates, newest first; none where it was never deployed. Raises UserError.

    The configuration that Pulumi keeps of each update says what it changed, whatever commit the
    checkout is at now.
    """
    try:
        read = list(islice(stack_state.updates(stack, variables), _READ))
    except stack_state.NeverUpdatedError:
        return []
    ran = _NOTHING if len(read) < _READ else None  # None: who knows
    told: list[StackUpdate] = []
    for item in reversed([item for item in read if item.get("startTime")]):
        counts, after = pairs(item.get("resourceChanges")), _after(item, ran)
        message = str(item.get("message") or "")
        # Without one Pulumi takes the title of the checkout's last commit, which changed nothing.
        about = "" if was_about(message, HOST) else message
        if ran is None or after is None:
            changes = [about] if about else []
        else:
            changes = list(_sentences(ran, after)) or [about or "no team, no version"]
        told.append(
            StackUpdate(
                when=datetime.fromisoformat(str(item["startTime"])),
                kind=str(item.get("kind", "")),
                result=str(item.get("result", "")),
                version=item.get("version"),
                changes=tuple(changes),
                checkout=_checkout(pairs(item.get("environment"))),
                message=message.partition("\n")[0],
                resources=", ".join(f"{counts[it]} {it}d" for it in _OPERATIONS if counts.get(it)),
            )
        )
        if item.get("result") == "succeeded":
            ran = after
    return told[: -_SHOWN - 1 : -1]


def _after(item: Mapping[str, Any], ran: Versions | None) -> Versions | None:
    """What runs once the update is through; None where that is not known."""
    if item.get("kind") == "destroy":
        return _NOTHING
    if item.get("kind") != "update":
        return ran
    wanted, message = _versions(item), str(item.get("message") or "")
    if was_about(message, HOST) or ran is None:
        return wanted if was_about(message, HOST) else None
    # Of a team alone: what else its configuration said was not carried out.
    sources = {name: wanted if was_about(message, name) else ran for name in {**ran, **wanted}}
    return {name: source[name] for name, source in sources.items() if name in source}


def _versions(item: Mapping[str, Any]) -> Versions:
    """What an update's configuration declares."""

    def written(key: str) -> Mapping[str, Any]:
        return pairs(stack_state.config_value(item, key))

    teams, own = dict(written("teams")), written("team")
    if own:
        teams[str(own.get("name"))] = own
    of_all = written("vcluster").get("version") or "default"
    versions = {HOST: {"KAI": str(written("kai").get("version") or "none")}}
    for name, team in teams.items():
        scheduler, vcluster = (pairs(pairs(team).get(k)) for k in ("scheduler", "vcluster"))
        kai = {"host": "of the host", "virtual": str(scheduler.get("version"))}
        versions[name] = {
            "KAI": kai.get(str(scheduler.get("mode")), "none"),
            "vCluster": str(vcluster.get("version") or of_all),
        }
    return versions


def _sentences(before: Versions, after: Versions) -> Iterator[str]:
    for name in {**before, **after}:
        subject = "the host" if name == HOST else f"team {name}"
        old, new = before.get(name), after.get(name)
        if new is None:
            yield f"{subject}: removed"
        elif old is None:
            yield f"{subject}: new with {', '.join(f'{what} {new[what]}' for what in new)}"
        elif old != new:
            parts = (f"{what} {old[what]} → {new[what]}" for what in new if old[what] != new[what])
            yield f"{subject}: {', '.join(parts)}"


def _checkout(environment: Mapping[str, Any]) -> str:
    """The commit that it was run from; Pulumi keeps its author, and not who ran it."""
    commit, author = environment.get("git.head"), environment.get("git.author")
    if not commit:
        return ""
    edited = " with edits" if environment.get("git.dirty") == "true" else ""
    return f"{str(commit)[:_SHORT]}{f' of {author}' if author else ''}{edited}"
