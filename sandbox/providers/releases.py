"""`kubernetes:helm.sh/v3:Release` by the `helm` program; it fails where Pulumi's fails."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulumi.runtime.proto import provider_pb2

from kai_fleet.components.releases.chart_values import merged
from kai_fleet.provider.errors import PartialError, PluginError
from sandbox.providers import diff
from sandbox.providers.helm import Helm, HelmError
from sandbox.providers.host import WARNING, name_of
from sandbox.providers.official_words import officially
from sandbox.providers.values import (
    UNKNOWN,
    Properties,
    PropertyValue,
    decode,
    encode,
    has_unknown,
    marked,
    plain,
)

if TYPE_CHECKING:
    from sandbox.providers.kubernetes import KubernetesStandIn

TOKEN: Final = "kubernetes:helm.sh/v3:Release"
_SECONDS: Final = 300
_INPUTS: Final = {
    *("chart", "version", "repositoryOpts", "name", "namespace", "values", "compat"),
    *("createNamespace", "skipAwait", "timeout", "resourceNames"),
    *("disableWebhooks", "disableCRDHooks"),
}


class Releases:
    """What the engine asks of a release."""

    def __init__(self, standin: KubernetesStandIn) -> None:
        self._standin = standin

    def check(self, request: Any) -> Any:
        """The inputs, complete, with the chart's exact version."""
        news, old = decode(request.news), plain(decode(request.olds))
        news = {key: value for key, value in news.items() if value.value is not None}
        given = plain(news)
        if unserved := sorted(set(given) - _INPUTS):
            raise self._standin.unserved(f"The input {unserved[0]} of a release")
        drawn = f"{name_of(request.urn)}-{secrets.token_hex(4)}"
        completed = {
            "name": given.get("name") or old.get("name") or drawn,
            "namespace": given.get("namespace") or self._standin.namespace,
        }
        if not given.get("skipAwait"):
            completed["timeout"] = given.get("timeout", _SECONDS)
        failures = []
        if not has_unknown(given):
            try:
                # A constraint such as ">=1.2" shows as a change once it means another version.
                helm = Helm(None, self._standin.cancelled.is_set)
                completed["version"] = helm.version(_chart(given))
            except HelmError as error:
                reason = officially("unknown_chart", why=error)
                failures.append(provider_pb2.CheckFailure(property="chart", reason=reason))
        news.pop("resourceNames", None)
        news |= {key: marked(value, news.get(key)) for key, value in completed.items()}
        return provider_pb2.CheckResponse(inputs=encode(news), failures=failures)

    def diff(self, request: Any) -> Any:
        """What differs between the state and the new inputs."""
        state, new = plain(decode(request.olds)), plain(decode(request.news))
        if "version" in request.ignoreChanges:
            new["version"] = state.get("version")
        return diff.response(None, list(diff.changes(state.get("__inputs"), state, new)), [])

    def create(self, request: Any, given: Properties) -> tuple[str, Properties]:
        """Install the release."""
        state = self._deployed("install", given, request)
        return "" if request.preview else "/".join(_address(plain(state))), state

    def update(self, request: Any, given: Properties) -> Properties:
        """Upgrade the release."""
        return self._deployed("upgrade", given, request)

    def _deployed(self, verb: str, news: Properties, request: Any) -> Properties:
        if request.preview:
            return _state(news, None)
        if reason := self._standin.unreachable:
            done = "create" if verb == "install" else "update"
            raise PluginError(officially("release_unreachable", verb=done, why=reason))
        given, helm = plain(news), self._helm()
        namespace, name = _address(given)
        before = helm.get("metadata", name, namespace)
        options = [*_chart(given), *_timeout(given)]
        if not given.get("skipAwait"):
            options.append("--wait")
        # The official plugin reads one of them when it installs and the other when it upgrades;
        # when it uninstalls, it reads neither.
        if given.get("disableWebhooks" if verb == "install" else "disableCRDHooks"):
            options.append("--no-hooks")
        if verb == "install" and given.get("createNamespace"):
            options.append("--create-namespace")
        if verb == "upgrade":
            options += ["--history-max", "0"]  # the official plugin sets no limit
        try:
            helm.deploy(verb, name, namespace, given.get("values") or {}, options)
        except HelmError as error:
            left = helm.get("metadata", name, namespace)
            if left is None or (before and left["revision"] == before["revision"]):
                raise
            raise self._failed(verb, error, _state(news, left), request.urn) from None
        return _state(news, helm.get("metadata", name, namespace))

    def _failed(self, verb: str, error: HelmError, state: Properties, urn: str) -> PartialError:
        """What is there after an error: the state has it, and the next run upgrades it."""
        namespace, name = _address(plain(state))
        where, done, running = f"{namespace}/{name}", "", "error running update: "
        if verb == "install":
            said = officially("release_failed", name=name, why=error)
            self._standin.log(said, urn, severity=WARNING)
            done, running = "was created, but ", ""
        said = officially("release_unready", where=where, done=done, running=running, why=error)
        return PartialError(said, where, state)

    def read(self, request: Any) -> tuple[str, Properties, Properties] | None:
        """The release as it is."""
        if self._standin.unreachable:
            return self._standin.objects.read(request)
        helm, (namespace, _, name) = self._helm(), request.id.rpartition("/")
        found = helm.get("metadata", name, namespace)
        if found is None:
            return None
        values, inputs = helm.get("values", name, namespace) or {}, decode(request.inputs)
        if not inputs:  # values may hold passwords, and nothing says which
            said = {key: marked(found[key]) for key in ("name", "namespace", "chart", "version")}
            inputs = said | {"values": marked(values).with_secret(True)}
        state = _state(inputs, found)
        if "values" in inputs:
            state["values"] = marked(merged(plain(inputs["values"]), values), inputs["values"])
        return request.id, state, inputs

    def delete(self, request: Any) -> None:
        """Uninstall the release; as with the official plugin, one that is gone is an error."""
        if reason := self._standin.unreachable:
            raise PluginError(officially("release_undeleted", why=json.dumps(reason)))
        given = plain(decode(request.properties))
        namespace, name = _address(given)
        waiting = [] if given.get("skipAwait") else ["--wait", *_timeout(given)]
        said = self._helm().uninstall(name, namespace, waiting)
        if said:
            text = officially("release_uninstalled", said=json.dumps(said))
            self._standin.log(text, request.urn, severity=WARNING)

    def _helm(self) -> Helm:
        return Helm(self._standin.cluster.where, self._standin.cancelled.is_set)


def _address(given: dict[str, Any]) -> tuple[str, str]:
    return str(given["namespace"]), str(given["name"])


def _chart(given: dict[str, Any]) -> list[str]:
    """helm's arguments that name the inputs' chart."""
    chart, repository = str(given.get("chart", "")), (given.get("repositoryOpts") or {}).get("repo")
    if not repository and Path(chart).exists():
        return [chart]
    version = ["--version", given["version"]] if given.get("version") else []
    return [chart, *version, *(["--repo", repository] if repository else [])]


def _timeout(given: dict[str, Any]) -> list[str]:
    return ["--timeout", f"{given.get('timeout') or _SECONDS}s"]


def _state(inputs: Properties, found: dict[str, Any] | None) -> Properties:
    """The state of a release; at preview its status is unknown."""
    status: Any = UNKNOWN
    kept = dict(inputs)
    if found is not None:
        keys = ("appVersion", "chart", "name", "namespace", "revision", "status", "version")
        status = {key: found.get(key) for key in keys}
        kept["version"] = marked(found["version"])
    return {**kept, "status": marked(status), "__inputs": PropertyValue(inputs, is_secret=True)}
