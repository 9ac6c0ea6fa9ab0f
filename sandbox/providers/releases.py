"""The resource `kubernetes:helm.sh/v3:Release`: its inputs, its outputs, its changes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Any, Final

from provider import wire
from provider.paths import Path
from provider.plugin import PluginError
from provider.protocol import provider_pb2
from provider.wire import UNKNOWN, Secret

from . import diff, naming
from .helm import Chart, Deployed, Helm
from .helm_records import Record

TOKEN: Final = "kubernetes:helm.sh/v3:Release"
INPUTS: Final = "__inputs"
DEFAULT_SECONDS: Final = 300

# What a user may give, beside what the code below reads by name: helm's flag for it
# at install and at upgrade, at install alone, at upgrade alone.
_FLAGS: Final = {
    "atomic": "--atomic",
    "devel": "--devel",
    "dependencyUpdate": "--dependency-update",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "disableWebhooks": "--no-hooks",
    "renderSubchartNotes": "--render-subchart-notes",
    "skipCrds": "--skip-crds",
}
_INSTALL_FLAGS: Final = {"createNamespace": "--create-namespace", "replace": "--replace"}
_UPGRADE_FLAGS: Final = {
    "cleanupOnFail": "--cleanup-on-fail",
    "forceUpdate": "--force",
    "recreatePods": "--recreate-pods",
    "resetValues": "--reset-values",
    "reuseValues": "--reuse-values",
}
_REPLACING: Final[list[Path]] = [("name",), ("namespace",)]


def check(
    news: dict[str, Any], olds: dict[str, Any], urn: str, namespace: str, helm: Helm
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The inputs with name, namespace, timeout and exact version; and (property, failure) pairs."""
    inputs = {key: value for key, value in news.items() if value is not None}
    inputs.pop("resourceNames", None)
    if not wire.plain(inputs.get("name")):
        kept = wire.plain(olds.get("name"))
        inputs["name"] = kept or f"{naming.urn_name(urn)}-{secrets.token_hex(4)}"
    if not wire.plain(inputs.get("namespace")):
        inputs["namespace"] = namespace
    if wire.plain(inputs.get("skipAwait")) is not True:
        inputs.setdefault("timeout", DEFAULT_SECONDS)
    failures = []
    if inputs.get("valueYamlFiles"):
        failures.append(("valueYamlFiles", "is not served by this stand-in: use values"))
    if not wire.has_unknown(inputs):
        try:
            found = helm.metadata(chart_of(inputs))
        except PluginError as error:
            failures.append(
                ("chart", f"{error}; check the chart name and repository configuration")
            )
        else:
            if found.get("type") == "library":
                failures.append(("chart", "is a library chart, which cannot be installed"))
            # The chart's own version, so that a constraint such as ">=1.2" that
            # comes to mean another version shows as a change.
            inputs["version"] = str(found.get("version", ""))
    return inputs, failures


def chart_of(inputs: dict[str, Any]) -> Chart:
    """Where the inputs' chart comes from."""
    given = wire.plain(inputs)
    repository = given.get("repositoryOpts") or {}
    files = [
        (option, str(value))
        for option, value in (
            ("--ca-file", repository.get("caFile")),
            ("--cert-file", repository.get("certFile")),
            ("--key-file", repository.get("keyFile")),
            ("--keyring", given.get("keyring") if given.get("verify") else None),
        )
        if value
    ]
    return Chart(
        chart=os.path.expanduser(str(given.get("chart", ""))),  # noqa: PTH111 (may be a URL)
        version=str(given.get("version") or ""),
        repository=str(repository.get("repo") or ""),
        username=str(repository.get("username") or ""),
        password=str(repository.get("password") or ""),
        files=tuple(files),
        options=("--verify",) if given.get("verify") else (),
    )


def changed(olds: dict[str, Any], news: dict[str, Any], ignored: list[str]) -> Any:
    """The protocol's answer to what differs between the old state and the new inputs."""
    old = wire.plain(olds.get(INPUTS) or {})
    new = wire.plain(news)
    if "version" in ignored:
        new["version"] = old.get("version")
    live = dict(old)
    # What a refresh saw: another chart version than was installed, or a failed release.
    status = wire.plain(olds.get("status")) or {}
    if status.get("version"):
        live["version"] = status["version"]
    found = list(diff.changes(old, live, new))
    if status.get("status") not in (None, "", "deployed"):
        found.append(diff.Change(("status",), provider_pb2.PropertyDiff.UPDATE))
    return diff.response(found, _REPLACING, ignored, delete_first=False)


def outputs(inputs: dict[str, Any], deployed: Deployed | None) -> dict[str, Any]:
    """The state of a release; without one, as at preview, its status is unknown."""
    status: Any = UNKNOWN
    if deployed is not None:
        status = {
            "appVersion": deployed.app_version,
            "chart": deployed.chart,
            "name": deployed.name,
            "namespace": deployed.namespace,
            "revision": deployed.revision,
            "status": deployed.status,
            "version": deployed.version,
        }
    return {**inputs, "status": status, INPUTS: Secret(wire.plain(inputs))}


def deploy(
    inputs: dict[str, Any], left: Record | None, helm: Helm, unlock: Callable[[str, str], None]
) -> Deployed:
    """Brings the release to `inputs`: an install, or an upgrade with all values.

    What an earlier run left half-way is cleared first: a first install that failed or
    never ended is uninstalled, an upgrade that never ended is forgotten by `unlock`,
    which gets the namespace and the name of the Secret in which helm keeps it.
    """
    name, namespace = address(inputs)
    if left is not None and left.revision == 1 and left.status != "deployed":
        helm.uninstall(name, namespace, wait=True, seconds=seconds(inputs))
        left = None
    if left is not None and left.pending:
        unlock(namespace, f"sh.helm.release.v1.{name}.v{left.revision}")
    return helm.deploy(
        "install" if left is None else "upgrade",
        name,
        namespace,
        chart_of(inputs),
        wire.plain(inputs.get("values")) or {},
        options(inputs, upgrade=left is not None),
        seconds(inputs),
    )


def create(
    inputs: dict[str, Any], left: Record | None, helm: Helm, unlock: Callable[[str, str], None]
) -> Deployed:
    """Installs the release; one of this name that is deployed is somebody else's."""
    name, namespace = address(inputs)
    if left is not None and left.status == "deployed" and inputs.get("replace") is not True:
        found = helm.status(name, namespace)
        what = f" (chart {found.chart} {found.version})" if found else ""
        raise PluginError(
            f"Helm release {namespace}/{name} exists already{what}: "
            "choose another name, or remove it with helm uninstall"
        )
    return deploy(inputs, left, helm, unlock)


def address(inputs: dict[str, Any]) -> tuple[str, str]:
    """The release's name and namespace."""
    return str(wire.plain(inputs["name"])), str(wire.plain(inputs["namespace"]))


def seconds(inputs: dict[str, Any]) -> float:
    """How long one operation on the release may take."""
    return float(wire.plain(inputs.get("timeout")) or DEFAULT_SECONDS)


def options(inputs: dict[str, Any], upgrade: bool) -> list[str]:
    """helm's options for `helm install`, or for `helm upgrade`."""
    given = wire.plain(inputs)
    flags = _FLAGS | (_UPGRADE_FLAGS if upgrade else _INSTALL_FLAGS)
    found = [flag for key, flag in flags.items() if given.get(key) is True]
    found += ["--timeout", f"{seconds(inputs):.0f}s"]
    if given.get("skipAwait") is not True:
        found.append("--wait")
        if given.get("waitForJobs") is True:
            found.append("--wait-for-jobs")
    if given.get("description"):
        found += ["--description", str(given["description"])]
    if given.get("postrender"):
        found += ["--post-renderer", str(given["postrender"])]
    if upgrade:
        # Official: no limit on the history unless one is given.
        found += ["--history-max", str(given.get("maxHistory") or 0)]
    return found
