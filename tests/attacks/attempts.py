"""What a tenant would try, and what has to pass: the tables of `tables/`, as objects.

An entry says what differs from an ordinary object of its team. `of` is what it is made from, a pod
unless it says another; of pods, `main`, `env`, `asks`, `gpus` and `restricted` are of the first
container, `init` and `beside` are others, `queue` makes it KAI's. With `later`, `status`, `debug`,
`resize` or `delete` the object is there already, and that is what is sent. `each` makes an entry
for each of its values; `{team}` stands for the team's name.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.attacks import objects
from tests.attacks.objects import GPU, PLACED, RESTRICTED, VISIBLE, Object, container

EVERY_MODE = ("ml", "nlp", "dev")  # virtual, host, default
TENANTS = ("vcluster", "vcluster delegate")
LEVELS = (*EVERY_MODE, "tight", "quiet")
TABLES = ("pods", "gpus", "kept", "reach", "control", "metadata")
FOLDER = Path(__file__).with_name("tables")

Maker = Callable[..., Object]
MADE: dict[str, Maker] = {
    "pod": objects.pod,
    "fraction": objects.fraction,
    "reservation": objects.reservation,
    "scaling": objects.scaling,
    "component": objects.component,
    "coredns": objects.core_dns,
    "control plane": lambda team: objects.control_plane(team) | {"apiVersion": "v1", "kind": "Pod"},
    "PersistentVolumeClaim": lambda _: objects.claim(),
    "Deployment": objects.deployment,
    "StatefulSet": objects.stateful_set,
}
# Helm's record of a team's release is as Helm writes it: what it holds does not matter.
PLAIN = yaml.safe_load("""
ConfigMap: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {}}
Secret: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {}}
ServiceAccount: {apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}
Service:
  {apiVersion: v1, kind: Service, metadata: {name: web},
   spec: {ports: [{port: 80, targetPort: 8080}], selector: {app: web}}}
Endpoints:
  {apiVersion: v1, kind: Endpoints, metadata: {name: web},
   subsets: [{addresses: [], ports: [{port: 80}]}]}
EndpointSlice:
  {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: [],
   metadata: {name: web, labels: {kubernetes.io/service-name: web}}, ports: [{port: 80}]}
helm record:
  apiVersion: v1
  kind: Secret
  type: helm.sh/release.v1
  metadata:
    name: sh.helm.release.v1.{team}.v2
    labels: {owner: helm, name: "{team}", status: deployed, version: "2"}
  stringData: {release: x}
""")
# What is sent once the object is there: the subresource.
CHANGES = {"later": "", "status": "status", "resize": "resize", "status patch": "status"}


@dataclass(frozen=True)
class Attempt:
    """An object that is sent to a team's namespace, and the words that the refusal must have.

    `who` are the accounts that have the right to try; nothing is refused where `says` is empty.
    """

    name: str
    teams: tuple[str, ...]
    written: Object
    says: str = ""
    who: tuple[str, ...] = TENANTS

    def body(self, team: str) -> Object:
        """The object that is sent, or that is there before."""
        spec = _of_team(self.written, team)
        of = spec.pop("of", "pod")
        which = {key: spec.pop(key) for key in ("part", "version") if key in spec}
        body = _of_team(PLAIN[of], team) if of in PLAIN else MADE[of](team, **which)
        more = {k: v for k, v in spec.items() if k not in (*CHANGES, "debug", "delete")}
        return _pod(body, team, more) if body.get("kind") == "Pod" else _merged(body, more)

    def change(self, team: str) -> tuple[str, str, Any] | None:
        """Verb, subresource and body of what is sent to an object that is there."""
        spec = _of_team(self.written, team)
        if "delete" in spec:
            return "DELETE", "", {"kind": "DeleteOptions", **spec["delete"]}
        if "debug" in spec:
            debug = {"ephemeralContainers": [_container({"name": "debug", **spec["debug"]})]}
            return "PATCH", "ephemeralcontainers", {"spec": debug}
        for key, sub in CHANGES.items():
            if key in spec:
                return "PATCH", sub, {"status": spec[key]} if key == "status" else spec[key]
        return None


def _of_team(written: Object, team: str) -> Object:
    text = json.dumps(written).replace("{team}", team)
    for key in ("preferred", "required"):  # Kubernetes' names of these are long
        text = text.replace(f'"{key}":', f'"{key}DuringSchedulingIgnoredDuringExecution":')
    found: Object = json.loads(text)
    return _merged(found, found.pop("by", {}).get(team, {}))


def _merged(body: Object, more: Object) -> Object:
    """As a JSON merge patch does it."""
    for key, value in more.items():
        if value is None:
            body.pop(key, None)
        elif isinstance(value, dict) and isinstance(body.get(key), dict):
            _merged(body[key], value)
        else:
            body[key] = value
    return body


def _replaced(body: Object, more: Object) -> Object:
    found = {**body, **more}
    return {key: value for key, value in found.items() if value is not None}


def _container(written: Object) -> Object:
    found = {**container(), **written}
    if isinstance(found.get("env"), dict):
        found["env"] = _environment(found["env"])
    return found


def _environment(env: Object) -> list[Object]:
    return [
        {"name": name, "value" if isinstance(value, str) else "valueFrom": value}
        for name, value in env.items()
    ]


def _pod(body: Object, team: str, written: Object) -> Object:
    body = copy.deepcopy(body)
    metadata, spec = body["metadata"], body["spec"]
    main = spec["containers"][0]
    queue = written.get("queue")
    if isinstance(queue, dict):
        queue = queue.get(team)
    if queue:
        metadata["labels"]["kai.scheduler/queue"] = queue
        spec["schedulerName"] = "kai-scheduler"
    for key in ("labels", "annotations"):
        if key in written:
            metadata[key] = _replaced(metadata.get(key) or {}, written[key])
    if "name" in written:
        metadata["name"] = written["name"]
    _merged(metadata, written.get("metadata", {}))
    if not written.get("placed", True):
        for key in PLACED[team]:
            del spec[key]
    asks = written.get("asks") or ({GPU: str(written["gpus"])} if "gpus" in written else {})
    if asks:
        main["resources"] = {"limits": dict(asks), "requests": dict(asks)}
    own = written.get("main", {})
    if "securityContext" in own:  # in place of that of the level
        main.pop("securityContext", None)
    _merged(main, own)
    if "env" in written:
        env = written["env"]
        main["env"] = _environment(env) if isinstance(env, dict) else env
    if "visible" in written:
        main["env"][0] = {"name": VISIBLE, "valueFrom": written["visible"]}
    if "restricted" in written:
        main["securityContext"] = _replaced(dict(RESTRICTED), written["restricted"])
    body["spec"] = spec = _replaced(spec, written.get("spec", {}))
    for key, place in (("beside", "containers"), ("init", "initContainers")):
        if key in written:
            more = [written[key]] if isinstance(written[key], dict) else written[key]
            spec[place] = [*spec.get(place, []), *map(_container, more)]
    return body


def _each(name: str, written: Object) -> Iterator[tuple[str, Object]]:
    each = written.pop("each", None)
    if each is None:
        yield name, written
        return
    values = each if isinstance(each, dict) else dict.fromkeys(each, "")
    for label, value in values.items():
        text = json.dumps(written).replace('"{value}"', json.dumps(value))
        yield name.replace("{each}", label), json.loads(text.replace("{each}", label))


def table(name: str) -> list[Attempt]:
    """The entries of a table."""
    return [
        Attempt(
            each,
            tuple(group.get("teams", EVERY_MODE)),
            body,
            group.get("says", ""),
            tuple(group.get("who", TENANTS)),
        )
        for group in yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
        for title, written in group["attempts"].items()
        for each, body in _each(title, written or {})
    ]


ATTEMPTS = [attempt for name in TABLES for attempt in table(name)]
