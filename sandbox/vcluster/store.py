"""`/vcluster snapshot` and `/vcluster restore` for a vCluster of the sandbox.

The archive is vCluster's: a gzipped tar with a member for each key. The sandbox has the keys of
Kubernetes alone, and no mappings: it has no syncer.
"""

import base64
import io
import json
import os
import sys
import tarfile
from pathlib import Path
from typing import Final

from sandbox.control_plane.command_lines import FLAGS, ControlPlane
from sandbox.control_plane.etcd import Etcd
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import Processes
from sandbox.directory import read_state

_REGISTRY: Final = "/registry"


def main() -> None:
    """Run `snapshot|restore DIRECTORY NAMESPACE NAME`; the file is in VCLUSTER_STORAGE_OPTIONS."""
    command, folder, namespace, name = sys.argv[1:]
    options = json.loads(base64.b64decode(os.environ["VCLUSTER_STORAGE_OPTIONS"]))
    file = Path(options["container"]["path"])
    state = read_state(Path(folder))
    assert state is not None
    etcd = Etcd(Path(folder), Ports(state.base_port))
    plane = ControlPlane(f"{namespace}.{name}", Path(folder), "127.0.0.1", 0, etcd)
    if command == "snapshot":
        keys = etcd.read(plane.etcd_prefix)
        file.write_bytes(archive({f"{_REGISTRY}{key}": keys[key] for key in keys}))
        print(f"Successfully backed up {len(keys)} etcd keys")
        return
    content = _keys(file.read_bytes())
    # Its API server keeps what it has read. It starts again with the next pod.
    Processes(Path(folder)).stop(map(plane.part_name, FLAGS))
    etcd.delete(plane.etcd_prefix)
    etcd.write(plane.etcd_prefix, content)
    print(f"Successfully restored {len(content)} etcd keys from snapshot")


def archive(keys: dict[str, bytes]) -> bytes:
    """The keys of a store as vCluster's snapshot has them."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for key, value in keys.items():
            member = tarfile.TarInfo(key)
            member.size = len(value)
            archive.addfile(member, io.BytesIO(value))
    return written.getvalue()


def _keys(data: bytes) -> dict[str, bytes]:
    """The keys in an archive, below the prefix of the store."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        contents = {member.name: archive.extractfile(member) for member in archive}
        return {
            name.removeprefix(_REGISTRY): content.read()
            for name, content in contents.items()
            if content
        }


if __name__ == "__main__":
    main()
