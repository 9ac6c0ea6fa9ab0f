"""A file for `pulumi import --file`: what a stack declares, to be found again on its clusters."""

import json
from collections.abc import Iterable
from pathlib import Path

from kai_fleet.names import COMMAND, PACKAGE, PROVIDERS, QUEUES, RELEASE, STACK
from kai_fleet.urns import read_urn
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.stack_file.reading import SECRET

# A Command runs its wait again, a queue tree takes over its queues, a patch is applied again.
_MADE_ANEW = (COMMAND, QUEUES, f"{PROVIDERS}{PACKAGE}")


def write(resources: Iterable[Registered], file: Path) -> None:
    """Write the file, with all but what an update makes anew.

    Beside it `components-FILE` is to be imported first: Pulumi (v3.274) imports providers before
    what they are in.

    The name of each is its URN, which is unique. A provider with a secret kubeconfig reads it
    from the file NAME.kubeconfig: the plan has no secrets. Raises OSError.
    """
    records: list[dict[str, object]] = []
    for resource in resources:
        if resource.type in _MADE_ANEW or resource.type.endswith("Patch"):
            continue
        record: dict[str, object] = {
            "type": resource.type,
            "name": resource.urn,
            "logicalName": resource.name,
        }
        if read_urn(resource.parent).type != STACK:
            record["parent"] = resource.parent
        if resource.provider:
            record["provider"] = resource.provider
        records.append({**record, **_identity(resource)})
    components = [record for record in records if "component" in record]
    for name, found in ((f"components-{file.name}", components), (file.name, records)):
        file.with_name(name).write_text(json.dumps({"resources": found}, indent=2))


def _identity(resource: Registered) -> dict[str, object]:
    """What tells Pulumi which one it is: a provider by its inputs, an object by its id."""
    if resource.type.startswith(PROVIDERS):
        inputs = dict(resource.inputs)
        if inputs.get("kubeconfig") == SECRET:
            inputs["kubeconfig"] = f"{resource.name}.kubeconfig"
        return {"inputs": inputs}
    if resource.type.startswith(f"{PACKAGE}:"):
        return {"component": True}
    place = resource.inputs
    if resource.type != RELEASE:
        place = place["metadata"]
    name = place.get("name")
    namespace = place.get("namespace")
    if namespace:
        name = f"{namespace}/{name}"
    return {"id": name}
