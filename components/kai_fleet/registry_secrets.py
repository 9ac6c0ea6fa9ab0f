"""Image pull Secrets, from the registry credentials of a stack file."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi_kubernetes.core import v1 as core

from kai_fleet.inputs import RegistryArgs
from kai_fleet.settings.sections.access import OF_STACK as OF_STACK
from kai_fleet.settings.sections.access import OF_TEAM as OF_TEAM

TYPE: Final = "kubernetes.io/dockerconfigjson"


def registry_secret(
    name: str,
    secret: str,
    namespace: pulumi.Input[str],
    registries: Mapping[str, RegistryArgs],
    opts: pulumi.ResourceOptions,
) -> pulumi.Resource:
    """Declare the image pull Secret `secret` in a namespace; `name` is the prefix of the resource.
    It is updated in place: the next pull uses a new password.
    """
    accounts: Any = dict(registries)
    metadata: Any = {"name": secret, "namespace": namespace}
    return core.Secret(
        f"{name}-{secret.removeprefix('kai-fleet-')}",
        metadata=metadata,
        type=TYPE,
        data={".dockerconfigjson": pulumi.Output.secret(accounts).apply(docker_config)},
        opts=opts,
    )


def docker_config(accounts: Mapping[str, Mapping[str, Any]]) -> str:
    """Content of `.dockerconfigjson` in base64: user and password of each registry."""
    auths = {}
    for registry, account in accounts.items():
        # A password from another resource may be a number.
        name, password = account["username"], str(account["password"])
        pair = base64.b64encode(f"{name}:{password}".encode()).decode()
        auths[registry] = {"username": name, "password": password, "auth": pair}
    return base64.b64encode(json.dumps({"auths": auths}, sort_keys=True).encode()).decode()
