"""A repository with a project in it whose history has the bases that a diff meets."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kai_fleet_cli.stack_file.reading import ROOT

GOOD = """\
config:
  kai-fleet:cluster: {name: lab, context: lab}
  kai-fleet:vcluster: {version: v0.36.1}
  kai-fleet:teams:
    ml:
      scheduler: {mode: virtual, version: v0.16.8}
      nodePool: {pool: ml}
      gpus: 4
      queues:
        train: {cpu: {quota: 1}, memory: {quota: 1G}, gpu: {quota: 2}}
    research:
      scheduler: {mode: virtual, version: v0.7.11}
      nodePool: {pool: research}
      gpus: 4
      queues:
        top:
          cpu: {quota: 8}
          memory: {quota: 8G}
          gpu: {quota: 4}
          children:
            alpha: {cpu: {quota: 1}, memory: {quota: 1G}, gpu: {quota: 3}}
            beta: {cpu: {quota: 2}, memory: {quota: 1G}, gpu: {quota: 1}}
"""
SECRETS = (
    "  other:token: {secure: v1:HIDDEN-ONE}\n",
    "  other:token: {secure: v1:HIDDEN-TWO}\n",
)


CODE = ("usage", "kubectl", "components", "policies", "stack", "cli")
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(repository, *arguments):
    done = subprocess.run(
        ["git", *IDENTITY, "-c", "core.hooksPath=/dev/null", *arguments],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


class Repository:
    """A project in a folder of a repository, with a commit per tag."""

    def __init__(self, folder):
        self.top = folder
        self.project = folder / "platform"
        self.file = self.project / "Pulumi.lab.yaml"
        self.project.mkdir()
        git(folder, "init", "--quiet")
        hook = folder / ".git" / "hooks" / "post-checkout"
        hook.write_text("#!/bin/sh\nexit 1\n")  # a hook of the reader's must not matter
        hook.chmod(0o755)

    def commit(self, tag):
        git(self.top, "add", "--all")
        git(self.top, "commit", "--quiet", "--no-verify", "--message", tag)
        git(self.top, "tag", tag)

    @property
    def environment(self):
        """Of a command that is to run the project's own code, as from an environment of its own."""
        folders = (str(self.project / name) for name in CODE)
        return {**os.environ, "COLUMNS": "200", "PYTHONPATH": os.pathsep.join(folders)}

    def fleet(self, *arguments):
        return subprocess.run(
            [sys.executable, "-m", "kai_fleet_cli", *arguments],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def unpacked(self):
        """The folders in which a diff keeps the files of its base."""
        return list(Path(tempfile.gettempdir()).glob("kai-fleet-base-*"))

    def is_tidy(self):
        """No such folder is left, and git knows of no other work tree."""
        listed = git(self.top, "worktree", "list").splitlines()
        return len(listed) == 1 and not self.unpacked()


def created(scratch, top):
    """Yields the repository in `top`; temporary folders are in `scratch` meanwhile."""
    before, tempfile.tempdir = tempfile.tempdir, str(scratch)
    os.environ["TMPDIR"] = str(scratch)
    repository = Repository(top)
    (repository.top / ".gitignore").write_text("__pycache__/\n")
    for name in CODE:
        shutil.copytree(ROOT / name, repository.project / name)  # bytecode too: that is quicker
    shutil.copy(ROOT / "__main__.py", repository.project)
    (repository.project / "Pulumi.other.yaml").write_text(GOOD)
    repository.commit("no-lab")
    repository.file.write_text(GOOD.replace("gpus: 4", "gpus: 3"))
    repository.commit("broken")
    entry = repository.project / "cli" / "kai_fleet_cli" / "__main__.py"
    code = entry.read_text()
    entry.write_text("import a_package_of_the_past\n")
    repository.commit("other-packages")
    entry.write_text("import time\n\ntime.sleep(600)\n")  # whoever plans it runs until a signal
    repository.commit("waits")
    entry.write_text(code)
    repository.file.write_text(GOOD + SECRETS[0])
    repository.commit("good")
    git(repository.top, "config", "core.abbrev", "12")
    yield repository
    tempfile.tempdir = before
    del os.environ["TMPDIR"]
