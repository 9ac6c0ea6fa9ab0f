"""Components of the package as a program of any language asks for them: remote, by their names."""

from typing import Any

import pulumi

from kai_fleet.package.outputs import OUTPUTS
from kai_fleet_cli.stack_file.reading import ROOT

PLUGIN = ROOT / ".venv" / "bin"


class Remote(pulumi.ComponentResource):
    """What an SDK that is generated from the schema declares; its outputs are attributes."""

    def __init__(
        self, kind: str, name: str, inputs: Any, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        outputs = {it.alias or key: None for key, it in OUTPUTS[kind].model_fields.items()}
        super().__init__(f"kai-fleet:index:{kind}", name, {**outputs, **inputs}, opts, remote=True)

    def output(self, name: str) -> Any:
        return self.__dict__[name]
