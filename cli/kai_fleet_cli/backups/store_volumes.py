"""The volume claims of a vCluster's store, made anew where they are gone."""

from dataclasses import dataclass
from http import HTTPStatus

from kai_fleet.cluster.kube.api import Object
from kai_fleet.cluster.kube.errors import RefusedError
from kai_fleet.values import get
from kai_fleet_cli.backups.control_plane import ControlPlane
from kai_fleet_cli.backups.host import until
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.errors import UserError

_STOP_SECONDS = 180.0


@dataclass(frozen=True)
class StoreVolumes:
    """The claims of a store, which its StatefulSet does not create again: the guard refuses it.

    Attributes:
        plane: The control plane, which does not run.
    """

    plane: ControlPlane

    def provide(self, *, anew: bool) -> None:
        """Create the claims that are missing.

        If an etcd has lost some of its members, or with `anew`, all begin anew: a member without
        its volume cannot join the others.

        Raises UserError if there is no control plane, or if a claim that is being deleted stays.
        """
        keeper = self.plane.etcd() or self.plane.workload()
        if keeper is None:
            raise UserError(f"team {self.plane.team} has no control plane to restore into")
        claims: dict[str, Object] = {}
        for template in keeper["spec"].get("volumeClaimTemplates") or []:
            beginning = f"{template['metadata']['name']}-{keeper['metadata']['name']}"
            for number in range(keeper["spec"].get("replicas", 1)):
                claims[f"{beginning}-{number}"] = template
        for name in claims:
            self._wait_while_deleted(name)
        missing = [name for name in claims if self._find(name) is None]
        if anew or 0 < len(missing) < len(claims):
            say(f"all members of the store of {keeper['metadata']['name']} begin anew")
            self._delete(keeper, list(claims))
            missing = list(claims)
        labels = keeper["spec"]["selector"]["matchLabels"]
        for name in missing:
            metadata = {"name": name, "labels": labels}
            self._create({"metadata": metadata, "spec": claims[name]["spec"]})

    def _create(self, claim: Object) -> None:
        """Create a claim, unless its StatefulSet was faster: the guard lets it make new ones."""
        say(f"creating claim {claim['metadata']['name']}, which is gone")
        try:
            self.plane.api.post(self._claims, claim)
        except RefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    @property
    def _claims(self) -> str:
        """The path of the claims in the namespace."""
        return f"{self.plane.path}/persistentvolumeclaims"

    def _find(self, name: str) -> Object | None:
        return self.plane.api.find(f"{self._claims}/{name}")

    def _wait_while_deleted(self, name: str) -> None:
        late = f"claim {name} is being deleted, and a pod still uses it"

        def is_settled() -> bool:
            return not get(self._find(name), "metadata", "deletionTimestamp")

        until(is_settled, _STOP_SECONDS, late)

    def _delete(self, keeper: Object, names: list[str]) -> None:
        """Delete claims, and the pods that use them, and wait until the claims are gone."""
        for number, name in enumerate(names):
            self.plane.api.delete(f"{self._claims}/{name}")
            pod = f"{keeper['metadata']['name']}-{number}"
            self.plane.api.delete(f"{self.plane.path}/pods/{pod}")
        for name in names:
            self._wait_while_deleted(name)
