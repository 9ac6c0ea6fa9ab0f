"""What kubeconfig files say of one context: its cluster and its user, as client-go reads them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import yaml

from kai_fleet.kube.errors import UnusableKubeconfigError

Entry = dict[str, Any]
_KINDS: Final = {"contexts": "context", "clusters": "cluster", "users": "user"}
_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
# What an HTTP header's name may have beside letters and digits.
_OF_HEADER_NAMES: Final = "!#$&'*+^`|"


@dataclass(frozen=True)
class ContextEntries:
    """One context: its `namespace`, and what is written of its cluster and its user.

    Paths of files in them are absolute, and keys without a value are left out.
    """

    cluster: Entry = field(repr=False)
    user_name: str
    user: Entry = field(repr=False)
    namespace: str | None = None

    def impersonation(self) -> Iterator[tuple[str, str]]:
        """The headers for `as`, `as-uid`, `as-groups` and `as-user-extra`.

        Raises UnusableKubeconfigError where the others stand without `as`.
        """
        user = self.user
        extra: Mapping[str, Sequence[Any]] = user.get("as-user-extra") or {}
        if name := user.get("as"):
            yield "Impersonate-User", str(name)
        elif extra or user.get("as-uid") or user.get("as-groups"):
            raise UnusableKubeconfigError(
                f"user {self.user_name} of the kubeconfig has as-uid, as-groups or as-user-extra"
                " and no as: write as, or take them out"
            )
        if uid := user.get("as-uid"):
            yield "Impersonate-Uid", str(uid)
        for group in user.get("as-groups") or []:
            yield "Impersonate-Group", str(group)
        for key, values in extra.items():
            for value in values:
                safe = quote(str(key).lower(), safe=_OF_HEADER_NAMES)
                yield f"Impersonate-Extra-{safe}", str(value)


def of_content(content: str, context: str | None) -> ContextEntries:
    """A context of a kubeconfig's content; None: its current one.

    Raises UnusableKubeconfigError, and yaml.YAMLError.
    """
    return _chosen([(None, yaml.safe_load(content))], context)


def of_files(paths: str, context: str | None) -> ContextEntries:
    """A context of files, separated as in $KUBECONFIG. The first that has a name counts.

    Files that are not there are left out. Raises UnusableKubeconfigError, OSError for a file that
    cannot be read, and yaml.YAMLError.
    """
    each = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    there = [path.absolute() for path in each if path.exists()]
    if not there:
        raise UnusableKubeconfigError(f"the kubeconfig cannot be used: {paths} is not there")
    return _chosen(
        [(path.parent, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in there], context
    )


def _chosen(files: Sequence[tuple[Path | None, Any]], context: str | None) -> ContextEntries:
    entries: dict[str, dict[str, Entry]] = {kind: {} for kind in _KINDS}
    current = context
    for folder, config in files:
        if not isinstance(config, dict):
            raise UnusableKubeconfigError("the kubeconfig cannot be used: it has no keys")
        current = current or config.get("current-context")
        for kind, key in _KINDS.items():
            for item in config.get(kind) or []:
                entries[kind].setdefault(str(item["name"]), _entry(item.get(key), folder))
    if not entries["contexts"]:
        raise UnusableKubeconfigError("the kubeconfig cannot be used: it has no contexts")
    names = ", ".join(entries["contexts"])
    if not current:
        raise UnusableKubeconfigError(
            "the kubeconfig cannot be used: it has no current-context; write --context with one of"
            f" its contexts: {names}"
        )
    chosen = entries["contexts"].get(str(current))
    if chosen is None:
        raise UnusableKubeconfigError(
            f"the kubeconfig has no context {current}; its contexts: {names}"
        )
    cluster, user = str(chosen.get("cluster", "")), str(chosen.get("user", ""))
    if not entries["clusters"].get(cluster, {}).get("server"):
        raise UnusableKubeconfigError(
            f"the kubeconfig cannot be used: context {current} names cluster {cluster}, which has"
            " no server"
        )
    if user and user not in entries["users"]:
        raise UnusableKubeconfigError(
            f"the kubeconfig cannot be used: context {current} names user {user}, which is not"
            " there"
        )
    return ContextEntries(
        entries["clusters"][cluster],
        user,
        entries["users"].get(user, {}),
        chosen.get("namespace"),
    )


def _entry(written: Entry | None, folder: Path | None) -> Entry:
    """What has a value, with paths from the file's own folder."""
    entry = {key: value for key, value in (written or {}).items() if value not in (None, "")}
    if folder is not None:
        entry |= {key: str(folder / entry[key]) for key in _FILES if key in entry}
        command = (entry.get("exec") or {}).get("command", "")
        if os.sep in command:
            entry["exec"] = {**entry["exec"], "command": str(folder / command)}
    return entry
