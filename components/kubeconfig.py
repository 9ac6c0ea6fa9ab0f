"""A vCluster's kubeconfig, made to work from where Pulumi runs."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import yaml

# What a Secret carries while its content is not known: nothing can be reached with it.
KEY: Final = "config"


def decoded(data: dict[str, str]) -> str:
    """The kubeconfig of a Secret `vc-NAME`, from its base64.

    Raises ValueError when the Secret has no such key.
    """
    try:
        return base64.b64decode(data[KEY]).decode()
    except (KeyError, binascii.Error) as why:
        raise ValueError(f"the vCluster's Secret has no readable key {KEY!r}") from why


def pointed_at(kubeconfig: str, server: str) -> str:
    """The same kubeconfig with every cluster at `server`.

    vCluster writes `https://localhost:8443`, which only answers behind a port-forward (V11); its
    certificate authority stays valid for the real address.
    """
    config = yaml.safe_load(kubeconfig)
    for cluster in config["clusters"]:
        cluster["cluster"]["server"] = server
    return yaml.safe_dump(config, sort_keys=True)
