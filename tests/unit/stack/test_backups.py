"""Backups in a stack file: whose keys count, what is refused, what a preview says is missing."""

import pulumi
import pytest

from kai_fleet.backup.schedules import hours_between
from kai_fleet_policies.finding import Level
from kai_fleet_stack import declared, existing
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.declared import is_unsaved
from kai_fleet_stack.existing import HostObjects
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.validation import validate
from tests.unit.stack.stack_arguments import settings_of, stack

TO = "s3:https://s3.example.com/fleet"
ON_HOST = "/api/v1/namespaces/backups"
SECRET = f"{ON_HOST}/secrets/kai-fleet-backup"


def of_team(raw):
    return Arguments(settings_of(raw)).team("ml").get("backup")


def test_none_is_declared_by_default_and_a_team_can_be_left_out():
    assert of_team(stack()) is None
    assert of_team(stack({"backup": False}, backup={"to": TO})) is None


def test_a_teams_keys_are_written_over_the_stacks():
    args = of_team(stack({"backup": {"keep": 0}}, backup={"to": TO, "keep": 7, "secret": "own"}))
    assert (args["to"], args["keep"], args["secret"]) == (TO, 0, "own")
    assert of_team(stack({"backup": {"to": "claim/copies"}}))["to"] == "claim/copies"


def test_images_come_from_the_mirror():
    args = of_team(stack(backup={"to": TO}, mirror="mirror.example.com/all"))
    assert args["restic_image"] == "mirror.example.com/all/restic/restic:0.18.1"
    assert args["kubectl_image"] == "mirror.example.com/all/alpine/k8s:1.34.1"


def mistakes(raw):
    return {finding.path: finding for finding in validate(raw).refused}


@pytest.mark.texts("mistakes")
@pytest.mark.parametrize(
    ("backup", "key"),
    [
        ({"schedule": "hourly", "to": TO}, "schedule"),
        ({"schedule": "0 */x * * *", "to": TO}, "schedule"),
        ({"to": "s3.example.com/fleet"}, "to"),
        ({"to": "s3:https://key:secret@s3.example.com/fleet"}, "to"),
    ],
    ids=["word", "step", "no scheme", "credentials"],
)
def test_what_restic_or_kubernetes_would_not_take_is_refused(backup, key, texts):
    found = mistakes(stack(backup=backup))
    texts(found[f"kai-fleet:backup.{key}"])


@pytest.mark.texts("mistakes")
def test_a_place_is_needed(texts):
    found = mistakes(stack({"backup": {"keep": 4}}))
    texts(found["kai-fleet:teams.ml.backup.to"])


@pytest.mark.texts("rules")
@pytest.mark.parametrize("name", ["team-vision", "kai-scheduler", "kube-system"])
def test_backup_namespace_of_a_team_or_of_the_product_is_refused(name, texts):
    found = mistakes(stack(backup={"to": TO, "namespace": name}))
    texts(found["kai-fleet:backup.namespace"])


@pytest.mark.texts("rules")
def test_backup_declared_advises_once_a_stack_that_says_nothing(monkeypatch, texts):
    monkeypatch.setattr(declared, "is_unsaved", is_unsaved)
    (advice,) = [found for found in validate(stack()).problems if found.check == "backup-declared"]
    assert (advice.level, advice.path) == (Level.ADVISORY, "kai-fleet:backup")
    texts(advice)
    for raw in (
        stack({"backup": False}),
        stack(backup={"to": TO}),
        stack(cluster={"name": "lab", "context": declared.SANDBOX}),
        stack(cluster={"name": "lab", "kind": {}}),
    ):
        assert "backup-declared" not in {found.check for found in validate(raw).problems}


def test_an_image_has_to_come_from_a_source():
    found = mistakes(stack(backup={"to": TO, "resticImage": "evil.example.com/restic:1"}))
    assert [finding.check for finding in found.values()] == ["sources-known"]
    listed = {"images": ["evil.example.com"]}
    raw = stack(backup={"to": TO, "resticImage": "evil.example.com/restic:1"}, sources=listed)
    assert mistakes(raw) == {}


def test_a_team_stack_has_no_such_key():
    platform = {"platform": {"stack": "lab"}, "team": {"name": "ml", "backup": {"to": TO}}}
    assert "kai-fleet:team.backup" in mistakes(platform)


@pytest.mark.parametrize(
    ("there", "command"),
    [
        ([], "kubectl create namespace backups && kubectl -n backups create secret generic"),
        ([ON_HOST], "and run: kubectl -n backups create secret generic kai-fleet-backup"),
    ],
)
def test_a_preview_tells_the_command_for_what_is_missing(there, command, monkeypatch):
    messages = []
    monkeypatch.setattr(pulumi.log, "warn", messages.append)
    settings = load(stack(backup={"to": TO})).settings
    existing.warn_of_missing_secrets(
        settings, HostObjects(lambda path: {"there": path in there}, existing.Deployed())
    )
    assert command in messages[0]
    existing.warn_of_missing_secrets(
        settings, HostObjects(lambda path: {"there": path == SECRET}, existing.Deployed())
    )
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        ("0 */6 * * *", 6),
        ("*/5 * * * *", 1),
        ("0 4 * * *", 24),
        ("0 4 * * 0", 168),
        ("0 4 1 * *", 744),
    ],
)
def test_the_period_of_a_schedule(schedule, hours):
    assert hours_between(schedule) == hours
