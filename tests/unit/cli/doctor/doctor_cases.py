"""What the doctor knows, as a table: what differs from a healthy stack, and what is found of it.

The files in `checks/` are the table, one for each module of the product that judges: in one file of
600 lines nobody finds a case. Above each group of cases stand cluster, level and check of what is
found, in its order: `host broken nodes, ml tenant pending`; or `nothing`. No other finding may be
there. The words of the findings are in `tests/texts/doctor.yaml`. A case has these keys:

* `never`: words that no finding has.
* `settings`, `host`, `ml`: what differs in the stack file, and among the objects of the host and of
  the vCluster, by resource and name. `null` takes away, a number is a place in a list, and an
  object that is not there is made.
* `waits`, `runs`: pods of KAI in the vCluster, without a node and on one; `on host`: pods of the
  team on the host. They have the arguments of `pod`, `gpus` and what an event `says`. A name
  `w-0..2` stands for three.
* `events`, `host events`: what events say in the vCluster and on the host, by object and reason.
* `absent`: names of objects that the stack requires and that are not there.
* `kai`: the version that runs inside. `mode: host`: KAI runs on the host.
* `unserved`, `unreached`, `certificate ends`, `store`: as in `Lab`.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from kai_fleet.cluster.store_use import EtcdUse, StoreUse
from kai_fleet.releases import kai
from tests.unit.cli.doctor.doctor_samples import (
    Lab,
    by_hand,
    daemon_set,
    deployment,
    event,
    in_host_mode,
    node,
    space,
)

TABLES: Final = {file.stem: file for file in Path(__file__).with_name("checks").glob("*.yaml")}
NOTHING: Final = "nothing"
NEW: Final = {
    "daemonsets": daemon_set,
    "deployments": deployment,
    "nodes": node,
    "queues": by_hand,
}
Case = dict[str, Any]


def _cases() -> Iterator[tuple[str, Case]]:
    for table, file in sorted(TABLES.items()):
        for finds, cases in YAML(typ="safe").load(file).items():
            found = [] if finds == NOTHING else finds.split(", ")
            for name, case in cases.items():
                yield name, {"table": table, "finds": found, **case}


CASES: Final = dict(_cases())
assert len(CASES) == len([*_cases()]), "two cases have one name"


def lab_of(name: str) -> Lab:
    """The healthy stack with what differs in a case."""
    case = {**CASES[name]}
    for key in ("table", "finds", "never"):
        case.pop(key, None)
    lab = in_host_mode() if case.pop("mode", "") == "host" else Lab()
    lab.settings = patched(lab.settings, case.pop("settings", {}))
    if version := case.pop("kai", ""):
        lab.settings["teams"]["ml"]["scheduler"]["version"] = version
        lab.ml["deployments"] = [deployment(name, version) for name in kai(version).deployments]
    for pod, more in _each(case.pop("waits", {})):
        lab.waits(pod, **more)
    for pod, more in _each(case.pop("runs", {})):
        lab.waits(pod, **{"node": "ml-0", **more})
    for pod, more in _each(case.pop("on host", {})):
        own = {"namespace": "team-ml", "node": "ml-0", "queue": None, **more}
        if own["queue"] is None:
            own["spec"] = {"schedulerName": "default-scheduler", **own.get("spec", {})}
        lab.waits(pod, where="host", **own)
    for where in ("host", "ml"):
        for resource, objects in case.pop(where, {}).items():
            _change(lab.objects(where), resource, objects)
        for about, says in case.pop("host events" if where == "host" else "events", {}).items():
            kind, of, reason = about.split()
            namespace, _, told = of.rpartition("/")
            for text in [says] if isinstance(says, str) else says:
                item = event(space(told, namespace=namespace), text, reason, kind)
                lab.objects(where)["events"].append(item)
    lab.gone |= {*case.pop("absent", [])}
    lab.unserved |= {*case.pop("unserved", [])}
    lab.unreached = case.pop("unreached", "")
    if ends := case.pop("certificate ends", ""):
        lab.certificate_ends = datetime.fromisoformat(ends)
    store = case.pop("store", {})
    etcds = {member: EtcdUse(**use) for member, use in store.get("etcds", {}).items()}
    lab.store = StoreUse(store.get("volumes", {}), etcds)
    assert not case, f"{name}: no such keys: {', '.join(case)}"
    return lab


def _each(pods: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, more in pods.items():
        first, _, last = name.rpartition("-")[2].partition("..")
        if not last:
            yield name, more
        for number in range(int(first), int(last) + 1) if last else ():
            yield f"{name.rpartition('-')[0]}-{number}", more


def _change(objects: dict[str, list[Any]], resource: str, changes: dict[str, Any] | None) -> None:
    """Change the objects of a resource by their names; None takes all away."""
    by_name = {item["metadata"]["name"]: item for item in objects.get(resource, ())}
    for name, change in (changes or dict.fromkeys(by_name)).items():
        if change is None:
            del by_name[name]
            continue
        about = change.get("metadata", {})
        of = {"namespace": about["namespace"]} if "namespace" in about else {}
        there = by_name.get(name) or NEW.get(resource, space)(name, **of)
        by_name[name] = patched(there, change)
    objects[resource] = [*by_name.values()]


def patched(there: Any, change: Any) -> Any:
    """A value with a change as of RFC 7396, which may also name places in lists."""
    if not isinstance(change, dict):
        return change
    if isinstance(there, list):
        return [patched(item, change.get(place, {})) for place, item in enumerate(there)]
    merged = {**there} if isinstance(there, dict) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = patched(merged.get(key), value)
    return merged
