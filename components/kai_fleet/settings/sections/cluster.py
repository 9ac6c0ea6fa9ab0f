"""The host cluster: one that there is, or a kind cluster that the stack makes on this machine."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SecretStr, StringConstraints

from kai_fleet.settings.sections.access import Access
from kai_fleet.settings.sections.kubernetes import LabelKey, LabelValue
from kai_fleet.settings.sections.model import Strict
from kai_fleet.settings.sections.platform import Name

HERE: Final = "127.0.0.1"
FIRST_NODE_PORT: Final = 30000
_OF_HERE: Final = (HERE, "localhost")

ContextName = Annotated[
    str | None, Field(min_length=1, description="A context of your kubeconfig.")
]
Kubeconfig = Annotated[
    SecretStr | None,
    Field(
        min_length=1,
        strict=False,
        description="The kubeconfig itself, set with `pulumi config set --secret --path`.",
    ),
]


class Kind(Strict):
    """What the kind cluster is made of. A change of it needs the stack taken down first."""

    gpus: Literal["auto", "none", "all"] = Field(
        default="auto", description="auto: this machine's GPUs, if it has some; all: must have."
    )
    image: Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=512)] | None = Field(
        default=None, description="Node image, such as kindest/node:v1.34.0; kind's own if unset."
    )
    workers: list[dict[LabelKey, LabelValue]] = Field(
        default_factory=list,
        max_length=20,
        description="A worker node for each entry, with these labels; the first has the GPUs.",
    )
    node_ports: int = Field(
        default=8,
        ge=1,
        le=64,
        description="How many node ports from 30000 up answer on 127.0.0.1; a team needs one.",
    )

    @property
    def ports(self) -> range:
        """The node ports that answer on this machine."""
        return range(FIRST_NODE_PORT, FIRST_NODE_PORT + self.node_ports)


class Credentials(Strict):
    """A team stack's own way to the platform's cluster; the cluster itself is the platform's."""

    context: ContextName = None
    kubeconfig: Kubeconfig = None


class Cluster(Strict):
    """The host cluster. Its name is its identity: credentials may rotate under it."""

    name: Name = Field(description="Stable identity of the cluster.")
    context: ContextName = None
    kubeconfig: Kubeconfig = None
    kind: Kind | None = Field(
        default=None, description="A kind cluster on this machine, made and deleted with the stack."
    )


def access_in_kind(access: Access | None) -> Access:
    """How a vCluster is reached there: at a node port on this machine, unless said otherwise."""
    written: dict[str, Any] = {"type": "NodePort", **(access.written if access else {})}
    here = {"host": HERE} if written["type"] == "NodePort" else {}
    return Access(**{**here, **written})


def port_mistakes(kind: Kind, teams: Mapping[str, Access]) -> Iterator[tuple[str, str, str]]:
    """Teams whose vCluster nobody could reach: (team, key, sentence)."""
    taken = {access.port for access in teams.values()}
    free = next((port for port in kind.ports if port not in taken), None)
    write = f"write port: {free}" if free else f"set cluster.kind.nodePorts to {len(teams)} or more"
    seen: dict[int, str] = {}
    for team, access in teams.items():
        if access.type == "LoadBalancer":
            yield team, "type", "LoadBalancer gets no address on a kind cluster; write NodePort"
        if access.type != "NodePort" or access.host not in _OF_HERE:
            continue
        if access.port is None:
            yield team, "port", f"is missing: a kind cluster opens its ports once; {write}"
        elif access.port not in kind.ports:
            last = kind.ports[-1]
            yield (
                team,
                "port",
                f"is {access.port}; on {HERE} answer {FIRST_NODE_PORT} to {last}"
                f" (cluster.kind.nodePorts): {write}",
            )
        elif access.port in seen:
            yield team, "port", f"is {access.port}, which team {seen[access.port]} has; {write}"
        else:
            seen[access.port] = team
