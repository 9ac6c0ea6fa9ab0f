"""The configuration of a Kubernetes provider resource, and what a change of it means."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

from provider import wire
from provider.protocol import provider_pb2
from provider.wire import UNKNOWN

from . import kubeconfig
from .kubeconfig import Target

_PREFIX: Final = "kubernetes:config:"
_CLUSTER_KEYS: Final = ("kubeconfig", "context", "cluster")


@dataclass(frozen=True)
class Settings:
    """What the program gave to the provider."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    namespace: str = ""
    force_conflicts: bool = False
    mutable_config_maps: bool = False
    mutable_secrets: bool = False
    delete_unreachable: bool = False
    quiet_warnings: bool = False

    @staticmethod
    def of(variables: dict[str, str]) -> Settings:
        """The settings of a Configure call; flags may come from the environment too."""

        def flag(key: str, variable: str) -> bool:
            return variables.get(_PREFIX + key, os.environ.get(variable, "")) == "true"

        return Settings(
            kubeconfig=variables.get(_PREFIX + "kubeconfig", ""),
            context=variables.get(_PREFIX + "context", ""),
            cluster=variables.get(_PREFIX + "cluster", ""),
            namespace=variables.get(_PREFIX + "namespace", ""),
            force_conflicts=flag("enablePatchForce", "PULUMI_K8S_ENABLE_PATCH_FORCE"),
            mutable_config_maps=flag(
                "enableConfigMapMutable", "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE"
            ),
            mutable_secrets=flag("enableSecretMutable", "PULUMI_K8S_ENABLE_SECRET_MUTABLE"),
            delete_unreachable=flag("deleteUnreachable", "PULUMI_K8S_DELETE_UNREACHABLE"),
            quiet_warnings=flag(
                "suppressDeprecationWarnings", "PULUMI_K8S_SUPPRESS_DEPRECATION_WARNINGS"
            ),
        )

    def target(self) -> Target:
        """The cluster that these settings name."""
        return kubeconfig.target(self.kubeconfig, self.context, self.cluster)


def check(news: dict[str, Any]) -> list[tuple[str, str]]:
    """(property, failure) pairs for settings that this stand-in cannot honour."""
    failures = []
    given = wire.plain(news)
    if given.get("renderYamlToDirectory"):
        failures.append(
            ("renderYamlToDirectory", "is not served by the stand-in: use the official plugin")
        )
    if given.get("enableServerSideApply") in (False, "false"):
        failures.append(
            ("enableServerSideApply", "cannot be false: the stand-in knows only server-side apply")
        )
    return failures


def changed(olds: dict[str, Any], news: dict[str, Any]) -> Any:
    """The protocol's answer: which settings differ, and which of them make a new provider.

    A provider is replaced, and with it all of its resources, when it names another
    cluster. `clusterIdentifier`, where old and new have one, alone decides that;
    otherwise the cluster entry of the kubeconfig does, and an unknown one counts as
    another cluster.
    """
    old, new = wire.plain(olds), wire.plain(news)
    keys = [key for key in {**old, **new} if key != "version"]
    differing = [key for key in keys if old.get(key) != new.get(key)]
    answer = provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)
    if not differing:
        return answer
    answer.changes = provider_pb2.DiffResponse.DIFF_SOME
    answer.diffs.extend(differing)
    before, after = old.get("clusterIdentifier"), new.get("clusterIdentifier")
    if before and after:
        if before != after:
            answer.replaces.append("clusterIdentifier")
        return answer
    unknown = [key for key in _CLUSTER_KEYS if new.get(key) is UNKNOWN]
    if unknown:
        answer.replaces.extend(unknown)
        return answer
    was = kubeconfig.active_cluster(*(old.get(key) for key in _CLUSTER_KEYS))
    now = kubeconfig.active_cluster(*(new.get(key) for key in _CLUSTER_KEYS))
    if was is not None and now is not None and was != now:
        answer.replaces.extend(key for key in _CLUSTER_KEYS if key in differing)
    return answer
