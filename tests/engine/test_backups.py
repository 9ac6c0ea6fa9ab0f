"""Backups on a sandbox: what a preview asks for, what is declared, and who reaches it.

The tests build on one another. The sandbox runs no container: the scripts are in
test_backup_scripts.py.
"""

import re

import pytest

from kai_fleet_cli.doctor.diagnosis import diagnose
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import state
from tests.engine.product import Product, project
from tests.engine.sandbox_commands import completed, typed, until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
VCLUSTER = "system:serviceaccount:team-dev:vc-dev"
TEAM_STACK = "system:serviceaccount:kai-fleet-team-stacks:vision"
BACKUPS = "system:serviceaccount:backups:backup-dev"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    directory = project(tmp_path_factory.mktemp("backups") / "project")
    found = Product.of("sandbox", sandbox, directory)

    def edit(settings):
        dev = settings["kai-fleet:teams"]["dev"]
        left_out = {"scheduler": {"mode": "default"}, "nodePool": {"kai-fleet/pool": "research"}}
        settings["kai-fleet:teams"] = {"dev": dev, "ops": {**left_out, "backup": False}}
        settings["kai-fleet:backup"] = {
            "to": "s3:https://s3.example.com/fleet",
            "accountAnnotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/backups"},
        }

    found.edit(edit)
    return found


@pytest.fixture(scope="module")
def kubectl(sandbox):
    """A command of kubectl on the host: its output, whatever its exit code."""

    def run(*arguments):
        done = completed(sandbox, "kubectl", *arguments)
        return (done.stdout + done.stderr).strip()

    return run


@pytest.fixture(scope="module")
def previewed(product):
    lines = []
    product.stack.preview(on_output=lines.append)
    return " ".join("\n".join(lines).split())


@pytest.fixture(scope="module")
def secret(sandbox, previewed, tmp_path_factory):
    """The Secret by the command that the preview prints."""
    folder = tmp_path_factory.mktemp("secret")
    (folder / "backup.env").write_text("RESTIC_PASSWORD=pass\nAWS_ACCESS_KEY_ID=key\n")
    printed = re.search(
        r"and run: (kubectl create namespace .*?--from-env-file=backup\.env)", previewed
    )
    assert printed, previewed
    ran = completed(sandbox, "sh", "-c", printed[1], cwd=folder)
    assert ran.returncode == 0, ran.stderr
    # What the Jobs run has to fit the strictest level.
    level = "pod-security.kubernetes.io/enforce=restricted"
    completed(sandbox, "kubectl", "label", "namespace", "backups", level)


@pytest.fixture(scope="module")
def declared(product, secret):
    return product.up()


def test_a_preview_prints_the_command_for_the_secret_and_is_quiet_once_it_is_there(
    product, secret, kubectl
):
    assert "AWS_ACCESS_KEY_ID" in kubectl(
        "get", "secret", "kai-fleet-backup", "-n", "backups", "-oyaml"
    )
    lines = []
    product.stack.preview(on_output=lines.append)
    assert "Secret kai-fleet-backup" not in "".join(lines)


def test_a_team_has_its_cronjobs_and_one_that_is_left_out_has_none(declared, kubectl):
    names = kubectl("get", "cronjobs", "-A", "-l", "kai-fleet/backup", "-o", "name").split()
    assert sorted(names) == ["cronjob.batch/backup-dev", "cronjob.batch/verify-dev"]
    account = kubectl("get", "serviceaccount", "backup-dev", "-n", "backups", "-o", "yaml")
    assert "arn:aws:iam::1:role/backups" in account


@pytest.mark.parametrize("kind", ["backup", "verify"])
def test_the_pods_of_its_jobs_fit_pod_security_restricted(declared, kubectl, kind):
    made = kubectl("create", "job", f"{kind}-now", f"--from=cronjob/{kind}-dev", "-n", "backups")
    assert "created" in made
    until(
        lambda: (
            "pod/"
            in kubectl("get", "pods", "-n", "backups", "-l", f"job-name={kind}-now", "-oname")
        )
    )


def allowed(kubectl, account, verb, resource, namespace="backups", subresource=""):
    """Whether an account may; `secrets/one` is the Secret of that name."""
    flags = ["-n", namespace, f"--as={account}", f"--subresource={subresource}"]
    return kubectl("auth", "can-i", verb, resource, *flags).splitlines()[-1] == "yes"


@pytest.mark.parametrize("account", [VCLUSTER, TEAM_STACK])
def test_no_account_of_a_team_reaches_a_backup(declared, kubectl, account):
    resources = [
        *("secrets", "configmaps", "cronjobs", "jobs", "persistentvolumeclaims"),
        *("serviceaccounts", "roles", "rolebindings"),
    ]
    reached = [
        (verb, resource)
        for resource in resources
        for verb in VERBS
        if allowed(kubectl, account, verb, resource)
    ]
    for verb in ("create", "delete", "update"):
        if allowed(kubectl, account, verb, "pods"):
            reached.append((verb, "pods"))
    for resource, part in (("pods", "exec"), ("pods", "log"), ("serviceaccounts", "token")):
        for verb in ("create", "get"):
            if allowed(kubectl, account, verb, resource, subresource=part):
                reached.append((verb, f"{resource}/{part}"))
    assert reached == []


def test_the_account_of_backups_reads_its_vcluster_and_nothing_else(declared, kubectl):
    for resource in ("secrets/dev-certs", "secrets/vc-config-dev"):
        assert allowed(kubectl, BACKUPS, "get", resource, "team-dev")
    assert allowed(kubectl, BACKUPS, "create", "pods", "team-dev", subresource="exec")
    assert not allowed(kubectl, BACKUPS, "create", "pods", "team-ops", subresource="exec")
    for verb, resource, namespace in (
        ("list", "secrets", "team-dev"),
        ("get", "secrets/vc-dev", "team-dev"),
        ("delete", "pods", "team-dev"),
        ("get", "secrets/kai-fleet-backup", "backups"),
    ):
        assert not allowed(kubectl, BACKUPS, verb, resource, namespace)


def test_the_list_of_teams_says_when_the_last_good_one_was(declared, kubectl):
    """The sandbox's nodes call every Job done."""
    made = kubectl("create", "job", "once", "--from=cronjob/backup-dev", "-n", "backups")
    assert "created" in made
    ages = until(lambda: state.backup_ages("sandbox"))
    assert re.fullmatch(r"\d+ min ago", ages["backup-dev"])
    assert not any(name.endswith("-ops") for name in ages)


def test_a_cronjob_that_somebody_deleted_comes_back_by_the_printed_command(
    declared, product, sandbox, kubectl, monkeypatch
):
    folder = product.file.parent
    monkeypatch.setattr(reading, "ROOT", folder)
    assert missing() == []
    for kind in ("backup", "verify"):
        kubectl("delete", "cronjob", f"{kind}-dev", "-n", "backups")
    found = missing()
    assert [finding.name for finding in found] == ["backup-dev and verify-dev"]
    (command,) = found[0].commands
    ran = typed(folder, command, KAI_FLEET_SANDBOX=str(sandbox.directory), **sandbox.env())
    assert ran.returncode == 0, ran
    assert missing() == []


def missing():
    """What the doctor finds of backups."""
    return [finding for finding in diagnose("sandbox").findings if finding.kind == "CronJob"]
