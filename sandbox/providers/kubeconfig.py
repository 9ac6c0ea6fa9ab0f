"""Which cluster a kubeconfig names, and how to speak to it."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from provider.plugin import PluginError

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without its C library
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]


@dataclass(frozen=True)
class Target:
    """The cluster and the user that one context of a kubeconfig names."""

    config: dict[str, Any]
    context: str
    cluster: dict[str, Any]
    user: dict[str, Any]
    namespace: str
    directory: Path = field(default_factory=Path)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self.cluster.get("server", ""))

    def file(self, entry: dict[str, Any], key: str) -> bytes | None:
        """What `key` (such as "client-key") holds, given inline or as a path."""
        if data := entry.get(f"{key}-data"):
            return base64.b64decode(data)
        if path := entry.get(key):
            try:
                return Path(self.directory, path).read_bytes()
            except OSError as error:
                raise PluginError(
                    f"the kubeconfig's {key} {path} cannot be read: {error.strerror}"
                ) from None
        return None


def read(given: str) -> tuple[dict[str, Any], Path]:
    """The kubeconfig that a provider's `kubeconfig` gives as a path or as content.

    Without one, $KUBECONFIG and then ~/.kube/config are read. The second value is
    the directory that the config's relative paths start from.
    """
    if not given:
        return _ambient()
    # Content has several lines or is JSON; a path is one short line.
    if "\n" not in given and not given.lstrip().startswith("{"):
        path = Path(given).expanduser()
        if path.is_file():
            return _parse(path.read_text(), str(path)), path.parent
        if "/" in given or ":" not in given:
            raise PluginError(
                f"the provider's kubeconfig {given!r} is not a file: give a path or the content"
            )
    return _parse(given, "the provider's kubeconfig"), Path()


def _ambient() -> tuple[dict[str, Any], Path]:
    named = os.environ.get("KUBECONFIG", "")
    paths = [Path(part) for part in named.split(os.pathsep) if part]
    paths = paths or [Path.home() / ".kube" / "config"]
    merged: dict[str, Any] = {}
    for path in paths:
        if path.is_file():
            for key, value in _parse(path.read_text(), str(path)).items():
                if isinstance(value, list):
                    merged[key] = [*merged.get(key, []), *value]
                elif not merged.get(key):
                    merged[key] = value
    if not merged:
        raise PluginError(
            f"no kubeconfig found at {', '.join(map(str, paths))}: "
            "set KUBECONFIG or the provider's kubeconfig"
        )
    return merged, paths[0].parent


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        config = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        # The parser's message quotes the text, which holds keys.
        raise PluginError(f"{where} is not valid YAML") from None
    if not isinstance(config, dict):
        raise PluginError(f"{where} is not a kubeconfig: it has no clusters and contexts")
    return config


def _named(config: dict[str, Any], kind: str, name: str) -> dict[str, Any] | None:
    for entry in config.get(f"{kind}s") or []:
        if entry.get("name") == name:
            found: dict[str, Any] = entry.get(kind) or {}
            return found
    return None


def target(given: str, context: str = "", cluster: str = "") -> Target:
    """The cluster that the kubeconfig's `context` (or its current one) names."""
    config, directory = read(given)
    name = context or str(config.get("current-context") or "")
    chosen = _named(config, "context", name)
    if chosen is None:
        known = ", ".join(str(entry.get("name")) for entry in config.get("contexts") or [])
        raise PluginError(
            f"the kubeconfig has no context {name!r}: its contexts are {known or 'none'}"
        )
    cluster_name = cluster or str(chosen.get("cluster", ""))
    found = _named(config, "cluster", cluster_name)
    if found is None:
        raise PluginError(f"the kubeconfig has no cluster {cluster_name!r} (context {name!r})")
    return Target(
        config=config,
        context=name,
        cluster=found,
        user=_named(config, "user", str(chosen.get("user", ""))) or {},
        namespace=str(chosen.get("namespace") or "default"),
        directory=directory,
    )


def active_cluster(given: Any, context: Any, cluster: Any) -> dict[str, Any] | None:
    """The cluster entry that these settings of a provider name; None when it cannot be told."""
    if not isinstance(given, str) or not given:
        return None
    try:
        return target(given, str(context or ""), str(cluster or "")).cluster
    except PluginError:
        return None


@contextmanager
def written(text: bytes, suffix: str = "") -> Iterator[Path]:
    """A file that only this user can read, there for the block."""
    descriptor, name = tempfile.mkstemp(prefix="kai-fleet-", suffix=suffix)
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        yield path
    finally:
        path.unlink(missing_ok=True)
