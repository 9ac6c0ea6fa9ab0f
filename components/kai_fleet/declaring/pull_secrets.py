"""Image pull Secrets."""

import json
from collections.abc import Mapping

from pulumi import Input, Output, Resource, ResourceOptions
from pulumi_kubernetes import core

from kai_fleet.declaring.inputs import RegistryArgs
from kai_fleet.values import in_base64


def registry_secrets(
    prefix: str,
    secret: str,
    namespace: Input[str],
    registries: Mapping[str, RegistryArgs] | None,
    opts: ResourceOptions,
) -> list[Resource]:
    """Declare the image pull Secret named `secret` in a namespace; none without registries.

    The resource's name is `prefix`, `-` and the Secret's name without `kai-fleet-`. The providers
    of `kubernetes_provider` update the Secret in place: the next pull uses a new password.
    """
    if not registries:
        return []
    config = Output.secret(dict(registries)).apply(docker_config)
    declared = core.v1.Secret(
        f"{prefix}-{secret.removeprefix('kai-fleet-')}",
        metadata={"name": secret, "namespace": namespace},
        type="kubernetes.io/dockerconfigjson",
        data={".dockerconfigjson": config},
        opts=opts,
    )
    return [declared]


def docker_config(accounts: Mapping[str, RegistryArgs]) -> str:
    """The base64 text of `.dockerconfigjson` with the accounts' names and passwords by registry.

    It contains the passwords. Raises KeyError for an account without a name or password.
    """
    auths = {}
    for registry, account in accounts.items():
        username = account["username"]
        # A password from another resource may be a number.
        password = str(account["password"])
        pair = in_base64(f"{username}:{password}")
        auths[registry] = {"username": username, "password": password, "auth": pair}
    return in_base64(json.dumps({"auths": auths}, sort_keys=True))
