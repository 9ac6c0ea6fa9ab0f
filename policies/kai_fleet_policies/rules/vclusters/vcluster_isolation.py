"""No chart value that grants rights on the host, or undoes what keeps teams from each other."""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, Final

import yaml

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.values import UNKNOWN, items, value_at
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import Values, judged

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "Whoever writes the values of a vCluster would decide what it may do on the host, to all teams"
    " (T12)."
)
REMEDY = "Drop the value, or write isolation: {level: off} for that team if it is meant."

# The decisions about the values of the chart.
_READ: Final[Mapping[str, Any]] = yaml.safe_load(
    (files(__package__) / "vcluster_areas.yaml").read_text(encoding="utf-8")
)
_OWN: Final[Mapping[str, str]] = _READ["own"]
_WRITTEN: Final = (*_READ["written"], *_OWN)
_BY_NAME: Final = frozenset(_READ["byName"])
_VOLUMES: Final = frozenset(_READ["volumes"])
_VOLUME_LISTS: Final = tuple(_READ["volumeLists"])
_SECRET_KEYS: Final = frozenset(_READ["secretKeys"])
_TEXTS: Final = tuple(_READ["texts"])

_DECIDED: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(_READ["allowed"]),
    **{key: reason for reason, keys in _READ["refused"].items() for key in keys},
}
_ABOVE: Final = frozenset(
    ".".join(key.split(".")[:n]) for key in (*_DECIDED, *_OWN) for n in range(1, key.count(".") + 1)
)
# The reasons by which the rule refuses more than single keys.
_RIGHTS: Final = str(_DECIDED["rbac.role"])
_ELSEWHERE: Final = str(_DECIDED["exportKubeConfig.secret.namespace"])
_OPEN: Final = str(_DECIDED["exportKubeConfig.server"])

_STANDARD: Final = "policies.podSecurityStandard"
_TOKENS: Final = "sync.toHost.pods.useSecretsForSATokens"
# Without a scheduler inside, the account has no right to these on the host.
_OF_SCHEDULERS: Final = ("sync.fromHost.nodes", "sync.fromHost.csiStorageCapacities")
_SECRETS: Final = "exportKubeConfig.additionalSecrets"
_NAMESPACE: Final = "exportKubeConfig.secret.namespace"
_ROLES: Final = ("rbac.clusterRole.enabled", "rbac.role.enabled")
_MEANT: Final = "drop it, or write isolation: {level: off} for the team if that is meant"


def check(cluster: DeclaredCluster) -> Problems:
    """The values of each vCluster that is to be isolated."""
    for team in cluster.teams:
        if team.level not in (None, "off"):
            yield from judged(team, _judge)


def _judge(team: DeclaredTeam, values: Values) -> Iterator[tuple[str, str]]:
    for key, what in _below(values, ""):
        if key == _NAMESPACE and value_at(values, key) == team.namespace:
            continue  # that is where it is in any case
        yield key, f"has {key}, which {what}; {_MEANT}"
    yield from _taken_away(values)
    for key, instead in _OWN.items():
        if value_at(values, key) is not None:
            yield key, f"has {key}, which is where the team's pods may go; write {instead} instead"
    if value_at(values, _STANDARD) in ("", "privileged"):
        yield _STANDARD, f"lifts the Pod Security of the vCluster; {_MEANT}"
    if value_at(values, _TOKENS) is False:
        yield (
            _TOKENS,
            f"has {_TOKENS} off, which shows the tokens of the vCluster's accounts to whoever reads"
            f" its pods on the host; {_MEANT}",
        )
    for key in _OF_SCHEDULERS if team.mode != "virtual" else ():
        if value_at(values, f"{key}.enabled") in (True, "true"):
            yield (
                key,
                f"has {key} on, which only a team in mode virtual may read on the host: the"
                f" vCluster would not start; {_MEANT}",
            )
    yield from _lists(team, values)
    yield from _rendered(values, "")


def _rendered(value: object, key: str) -> Iterator[tuple[str, str]]:
    """Texts that Helm would run, or read as more than a value: with the rights of who installs."""
    if key in _TEXTS:
        return
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _written(str(name), key or str(name))
            yield from _rendered(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, str):
        yield from _written(value, key)
    else:
        for item in items(value):
            yield from _rendered(item, key)


def _written(text: str, key: str) -> Iterator[tuple[str, str]]:
    if "{{" in text:
        yield (
            key,
            "has {{, which Helm runs as a template with the rights of whoever installs the chart:"
            " it reads every Secret of the host; write the text that is meant",
        )
    # The chart writes annotations as YAML, and most other values as they are.
    if len(text.splitlines()) > 1 and ".annotations." not in f"{key}.":
        yield (
            key,
            "has several lines, and the chart writes it into its manifests as it is: the second"
            " could be an object of its own, anywhere on the host; write one line",
        )


def _taken_away(values: Values) -> Iterator[tuple[str, str]]:
    """What the program writes, and a value of the user's drops: the chart's own would come back."""
    for written in _WRITTEN:
        here: object = values
        steps = written.split(".")
        for n, step in enumerate(steps, 1):
            if not isinstance(here, Mapping) or step not in here:
                break
            here, key = here[step], ".".join(steps[:n])
            unread = here is not UNKNOWN and not isinstance(here, Mapping)
            if here is None or (n < len(steps) and unread):
                yield key, f"has nothing in {key}, where the platform writes {written}; drop it"
                break
    for role in _ROLES:
        if value_at(values, role) == "auto":
            yield role, f"has {role}, which {_RIGHTS}; {_MEANT}"


def _below(value: Mapping[str, object], above: str) -> Iterator[tuple[str, str]]:
    """The refused keys that switch something on: at the key that decides, or where none does."""
    for name, item in value.items():
        key = f"{above}.{name}" if above else str(name)
        decision = decided(key)
        if name == "patches" and key.startswith("sync.") and _says(item, key):
            yield key, "changes what is synced to the host, or everybody's, by code of its own"
        elif isinstance(item, Mapping) and _goes_on(key, item):
            yield from _below(item, key)
        elif _says(item, key):
            if decision is None:
                yield key, "nobody has judged for teams that are kept apart"
            elif decision[1] is not None:
                yield decision[0], decision[1]


def decided(key: str) -> tuple[str, str | None] | None:
    """The longest key that decides about this one, and why it is refused; None: none does."""
    parts = key.split(".")
    for n in range(len(parts), 0, -1):
        above = ".".join(parts[:n])
        if above in _DECIDED:
            return above, _DECIDED[above]
    return None


def _goes_on(key: str, item: Mapping[str, object]) -> bool:
    """Whether single keys below have to be looked at."""
    decision = decided(key)
    synced = key.startswith("sync.") and decision is not None and decision[1] is None
    return key in _ABOVE or (synced and item.get("enabled") is not False)


def _lists(team: DeclaredTeam, values: Values) -> Iterator[tuple[str, str]]:
    for key in _VOLUME_LISTS:
        for volume in items(value_at(values, key)):
            kinds = set(volume) - _VOLUMES if isinstance(volume, Mapping) else set()
            if kinds:
                yield (
                    key,
                    f"has a volume of kind {listed(sorted(map(str, kinds)))} in {key}, which may"
                    " reach beyond the team's namespace; write configMap, secret, emptyDir,"
                    " projected, downwardAPI or persistentVolumeClaim",
                )
    for secret in items(value_at(values, _SECRETS)):
        keys = {k for k, v in secret.items() if _says(v)} if isinstance(secret, Mapping) else set()
        if isinstance(secret, Mapping) and secret.get("namespace") == team.namespace:
            keys.discard("namespace")
        for name in sorted(map(str, keys - _SECRET_KEYS)):
            what = _ELSEWHERE if name == "namespace" else _OPEN
            yield _SECRETS, f"has {name} in {_SECRETS}, which {what}; {_MEANT}"


def _says(value: object, key: str = "") -> bool:
    """Whether a value switches something on, or adds something."""
    if isinstance(value, Mapping):
        if value.get("enabled") is False and key not in _BY_NAME:
            return False
        return any(_says(item, f"{key}.{name}") for name, item in value.items())
    return value not in (None, False, "", [], "auto")
