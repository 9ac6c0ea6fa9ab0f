"""Credentials of image registries, of which the Secrets are made that pods pull with."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BeforeValidator, Field, SecretStr, StringConstraints

from kai_fleet.releases import sources
from kai_fleet.releases.sources import NoPlaceError
from kai_fleet.settings.sections.model import Strict

OF_STACK: Final = "kai-fleet-registries"  # the Secret that is made of kai-fleet:registries
OF_TEAM: Final = "kai-fleet-team-registries"  # and the one of a team's own
_EXAMPLE: Final = "mirror.example.com, or ghcr.io/organisation"


def _registry(value: Any) -> Any:
    """As kubelets match it with the names of images: a host, and perhaps a path."""
    if not isinstance(value, str):
        return value
    try:
        sources.registry_place(value)
    except NoPlaceError as why:
        raise ValueError(f"{why}; write {_EXAMPLE}") from None
    host = value.partition("/")[0]
    if "." not in host and ":" not in host and host != "localhost":
        raise ValueError(f"has no host in front; write {_EXAMPLE}")
    return value


def _as_text(value: Any) -> Any:
    """A number as text: no message may show it."""
    return str(value) if isinstance(value, int | float) else value


RegistryName = Annotated[str, BeforeValidator(_registry), StringConstraints(max_length=255)]


class RegistryCredentials(Strict):
    """How images of one registry are pulled: by an account that only reads."""

    username: str = Field(
        min_length=1, pattern=r"^[^:]+$", description="The account's name, without a colon."
    )
    password: Annotated[SecretStr, BeforeValidator(_as_text)] = Field(
        min_length=1,
        strict=False,
        description="Its password or token; set it with `pulumi config set --secret --path`.",
    )


Registries = dict[RegistryName, RegistryCredentials]
# Those of each Secret, by its name.
SecretRegistries: TypeAlias = Mapping[str, Mapping[str, RegistryCredentials]]


def by_secret(of_stack: Registries, of_team: Registries | None = None) -> SecretRegistries:
    """The Secrets to be made, by name. A Secret without credentials is left out."""
    every = {OF_STACK: of_stack, OF_TEAM: of_team or {}}
    return {name: registries for name, registries in every.items() if registries}
