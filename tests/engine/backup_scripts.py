"""The scripts of backups outside of a pod: an S3 server, and stand-ins for clusters."""

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from hashlib import sha256
from pathlib import Path

from kai_fleet import backup
from sandbox.tools import toolbox

SCRIPTS = Path(backup.__file__).with_name("scripts")
UID = "0c1d2e3f-1111-2222-3333-444455556666"
KEYS = {
    "/registry/namespaces/kube-system": f'{{"metadata": {{"uid": "{UID}"}}}}',
    "/registry/secrets/default/token": "{}",
    "/vcluster/mappings/v1/a": "{}",
}
# A stand-in for kubectl: `exec` runs its command on this machine, in a folder that is the pod's.
KUBECTL = """#!/bin/sh
case "$*" in
  *"get pods"*) cat "$POD/pods" ;;
  *"get secret ml-certs"*) printf '{"ca.crt": "Y2E="}' ;;
  *"get secret vc-config-ml"*) printf 'sync: {}' | base64 ;;
  *" exec "*"cat "*) "$POD/carry" "$POD/archive" ;;
  *" exec "*sha256sum*) sha256sum "$POD/archive" ;;
  *" exec "*snapshot*) exit "$(cat "$POD/code")" ;;
esac
"""
# Stand-ins for vCluster's program and kine, which come in images: `restore` and `snapshot` copy.
VCLUSTER = """#!/bin/sh
path=$(printf '%s' "$VCLUSTER_STORAGE_OPTIONS" | base64 -d | sed 's/.*"path":"\\([^"]*\\)".*/\\1/')
case $1 in
  restore) cp "$path" "$DATA/store" ;;
  snapshot) cp "${OTHER:-$DATA/store}" "$path" ;;
esac
"""
KINE = """#!/bin/sh
exec sleep 30
"""


def archive(path, keys=KEYS):
    """As `/vcluster snapshot` writes one."""
    with tarfile.open(path, "w:gz") as file:
        for name, text in keys.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            file.addfile(member, io.BytesIO(text.encode()))
    return path


def copy_of(folder, **fields):
    """The folder of a backup, with these fields of backup.json in place of the right ones."""
    folder.mkdir()
    content = archive(folder / "snapshot.tar.gz").read_bytes()
    (folder / "certs.json").write_text("{}")
    (folder / "config.yaml").write_text("sync: {}")
    about = {"team": "ml", "keys": 3, "sha256": sha256(content).hexdigest(), **fields}
    (folder / "backup.json").write_text(json.dumps(about) + "\n")
    return folder


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


class Jobs:
    """Runs the scripts as a Job does; `said` is what the last one said."""

    def __init__(self, folder, **variables):
        restic = toolbox.ensure(["restic"], print)["restic"].path
        self.message = folder / "message"
        self.variables = {
            "PATH": f"{restic.parent}:{os.environ['PATH']}",
            "NAME": "ml",
            "SECRET": "kai-fleet-backup",
            "KEEP": "2",
            "MESSAGE": str(self.message),
            "RESTIC_PASSWORD": "a password",
            "PATIENCE": "4",  # seconds, for a store that refuses
            "MOST": "20",
            "WAIT": "1s",
            **variables,
        }

    def run(self, script, *before, **variables):
        """The exit code. A file of the script's name in the log of a failed test."""
        self.message.unlink(missing_ok=True)
        environment = {**self.variables, **{k: str(v) for k, v in variables.items()}}
        command = [*before, "sh", str(SCRIPTS / script)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)
        print(done.stdout, done.stderr)
        self.said = self.message.read_text() if self.message.exists() else ""
        return done.returncode

    def restic(self, *arguments):
        command = ["restic", "--no-cache", "--json", *arguments]
        done = subprocess.run(
            command, env=self.variables, capture_output=True, text=True, check=True, timeout=60
        )
        return json.loads(done.stdout)


@contextlib.contextmanager
def s3_server(folder):
    """The address of a real S3 server on a free port, whose buckets are folders."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("rclone"), "serve", "s3", "--auth-key", "key,secret"]
    command += ["--addr", f"127.0.0.1:{port}", "--vfs-cache-mode", "off", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            ends = time.monotonic() + 30
            while time.monotonic() < ends:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield f"s3:http://127.0.0.1:{port}"
        finally:
            server.terminate()
