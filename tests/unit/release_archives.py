"""What matters here of the official archives, by the release scripts at the pinned versions.

The names come from: etcd `scripts/build-binary.sh`, Kubernetes `build/lib/release.sh`, KWOK
`hack/releases.sh`, Helm `Makefile` (dist), Pulumi `.goreleaser.yml` with
`scripts/prep-for-goreleaser.sh`, Prometheus' `.promu.yml`, and the plugins' `.goreleaser.yml`.
"""

import hashlib
import io
import sys
import tarfile
from pathlib import Path

from sandbox.tools.release_downloads import this_platform
from sandbox.tools.table import COMMAND_PROVIDER, KUBERNETES_PROVIDER

ANSWERS = Path(__file__).with_name("plugin_that_answers.py")
_HERE = this_platform().replace("/", "-")

# Title of the bundle → the archive's name and its executables; none for a bare binary.
ARCHIVES: dict[str, tuple[str, tuple[str, ...]]] = {
    "etcd": (
        f"etcd-v3.6.5-{_HERE}.tar.gz",
        tuple(f"etcd-v3.6.5-{_HERE}/{name}" for name in ("etcd", "etcdctl", "etcdutl")),
    ),
    "Kubernetes": (
        f"kubernetes-server-{_HERE}.tar.gz",
        tuple(
            f"kubernetes/server/bin/{name}"
            for name in (
                "kube-apiserver",
                "kube-controller-manager",
                "kube-proxy",
                "kube-scheduler",
                "kubectl",
            )
        ),
    ),
    "KWOK": (f"kwok-{_HERE}", ()),
    "Helm": (f"helm-v3.22.0-{_HERE}.tar.gz", (f"{_HERE}/helm",)),
    "Pulumi": (
        f"pulumi-v3.274.1-{_HERE.replace('amd64', 'x64')}.tar.gz",
        tuple(
            f"pulumi/{name}"
            for name in (
                "pulumi",
                "pulumi-language-nodejs",
                "pulumi-language-python",
                "pulumi-language-python-exec",
                "pulumi-language-yaml",
                "pulumi-resource-pulumi-python",
            )
        ),
    ),
    "Prometheus": (
        f"prometheus-3.13.5.{_HERE}.tar.gz",
        tuple(f"prometheus-3.13.5.{_HERE}/{name}" for name in ("prometheus", "promtool")),
    ),
    "Pulumi's Kubernetes plugin": (
        f"{KUBERNETES_PROVIDER}-v4.34.2-{_HERE}.tar.gz",
        (KUBERNETES_PROVIDER,),
    ),
    "Pulumi's Command plugin": (
        f"{COMMAND_PROVIDER}-v1.2.1-{_HERE}.tar.gz",
        (COMMAND_PROVIDER,),
    ),
}


def publish(folder: Path, title: str, version: str) -> str:
    """Write the archive into the folder, each program telling `version`; returns its SHA-256."""
    name, members = ARCHIVES[title]
    plugin = name.startswith("pulumi-resource-")
    told = (
        f'#!/bin/sh\nexec {sys.executable} {ANSWERS} {version} "$@"\n'
        if plugin
        else f"#!/bin/sh\necho v{version}\n"
    )
    content = archive(dict.fromkeys(members, told)) if members else told.encode()
    (folder / name).write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def archive(files: dict[str, str]) -> bytes:
    """A .tar.gz of executables, with the README that each project adds."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path, text in {**files, "README.md": "Read me.\n"}.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text.encode()), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()
