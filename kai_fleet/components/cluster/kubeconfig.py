"""A vCluster's kubeconfig, made to work from where Pulumi runs."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import yaml

KEY: Final = "config"


class NoKubeconfig(ValueError):  # noqa: N818 - its message is all a user sees
    """A Secret `vc-NAME` that holds no kubeconfig; the message says what it has instead."""


def of_secret(data: Mapping[str, str], server: str) -> str:
    """The kubeconfig of a Secret `vc-NAME`, from its base64, with every cluster at `server`.

    vCluster writes `https://localhost:8443`, which only answers behind a port-forward (V11); its
    certificate authority stays valid for the real address. Raises NoKubeconfig.
    """
    if KEY not in data:
        raise NoKubeconfig(f"has no key {KEY!r}")
    try:
        config = yaml.safe_load(base64.b64decode(data[KEY], validate=True).decode())
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = server
    except (ValueError, KeyError, TypeError, yaml.YAMLError):
        raise NoKubeconfig(f"holds no kubeconfig at its key {KEY!r}") from None
    return yaml.safe_dump(config, sort_keys=True)


def address_of(service: Mapping[str, Any], access: str, host: str | None) -> str | None:
    """`host:port` at which a vCluster's Service is reached by this type of access; None while it
    has none. `host` goes before what a load balancer says.
    """
    metadata, ports = service["metadata"], (service.get("spec") or {}).get("ports") or [{}]
    match access:
        case "NodePort":
            port = ports[0].get("nodePort")
            return f"{host}:{port}" if port else None
        case "LoadBalancer":
            ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
            given = next((entry.get("hostname") or entry.get("ip") for entry in ingress), None)
            return f"{host or given}:{ports[0].get('port')}" if given else None
    return f"{metadata['name']}.{metadata['namespace']}.svc:{ports[0].get('port')}"
