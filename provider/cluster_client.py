"""A client for a cluster, in a process that may be loaded before its environment is set."""

from __future__ import annotations

import os
from typing import Final

import yaml
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from provider.client_files import of_content, of_file

# What is raised for a kubeconfig that cannot be used.
UNUSABLE: Final = (ConfigException, OSError, yaml.YAMLError, TypeError, KeyError)


def cluster_client(context: str | None, kubeconfig: str | None) -> client.ApiClient:
    """By a kubeconfig's content, or else by a context of the user's. Raises UNUSABLE."""
    if kubeconfig:
        return of_content(kubeconfig)
    # Named, because the client reads this variable when it is imported, which may be earlier.
    file = os.environ.get("KUBECONFIG") or config.KUBE_CONFIG_DEFAULT_LOCATION
    return of_file(file, context or None)


def headers(configuration: client.Configuration) -> dict[str, str]:
    """What a plain request carries: JSON is wanted, and who asks."""
    found = {"Accept": "application/json"}
    for setting in configuration.auth_settings().values():
        if setting.get("in") == "header" and setting.get("value"):
            found[setting["key"]] = setting["value"]
    return found
