"""KAI's own examples and queues, read from the file beside this one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kai_fleet.releases import version_key

Document = Mapping[str, Any]
_FILE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
TREES: dict[str, list[Document]] = _FILE["trees"]
OWN_TREE = TREES.pop("our own page")


@dataclass(frozen=True)
class Example:
    """Manifests, and why the guard denies them; "" where it takes them."""

    name: str
    documents: list[Document]
    since: str = "v0.7.11"
    denied: str = ""

    def shown_in(self, version: str) -> bool:
        """Whether that version's sources have it."""
        return version_key(version) >= version_key(self.since)

    @property
    def pods(self) -> Iterator[dict[str, Any]]:
        """Its pods, and those of its Jobs as the Job's controller makes them."""
        for document in self.documents:
            if document["kind"] == "Pod":
                yield dict(document)
            for template in _templates(document.get("spec", {})):
                metadata = {**template.get("metadata", {}), "name": document["metadata"]["name"]}
                pod = {"apiVersion": "v1", "kind": "Pod"}
                yield {**pod, "metadata": metadata, "spec": template["spec"]}


def _templates(spec: Document) -> list[dict[str, Any]]:
    if "template" in spec:
        return [spec["template"]]
    cluster = spec.get("rayClusterSpec", {})
    heads = [cluster["headGroupSpec"]] if cluster else []
    workers = [*spec.get("pytorchReplicaSpecs", {}).values(), *cluster.get("workerGroupSpecs", [])]
    return [part["template"] for part in (*heads, *workers)]


EXAMPLES = [Example(name, **parts) for name, parts in _FILE["examples"].items()]
