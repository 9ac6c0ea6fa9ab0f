"""`fleet upgrade`: its steps, one after another, and what it refuses."""

import json
from datetime import date
from types import SimpleNamespace

import pytest

from kai_fleet import releases
from kai_fleet.cluster.kube.errors import UnreachableError
from kai_fleet_cli import hosts
from kai_fleet_cli.plan import offline
from kai_fleet_cli.stack_file.edit import with_value
from kai_fleet_cli.stack_file.reading import parse

pytestmark = pytest.mark.texts("upgrade")

OLD = """\
config:
  kai-fleet:cluster: {name: lab, context: lab}
  kai-fleet:vcluster: {version: v0.34.7}
  kai-fleet:teams:
    ml:
      scheduler: {mode: virtual, version: v0.7.11}
      vcluster: {version: v0.33.4}
      nodePool: {pool: ml}
      gpus: 1
    dev:
      scheduler: {mode: default}
      vcluster: {kubernetesVersion: v1.34.4}
      nodePool: {pool: dev}
      gpus: 1
"""


@pytest.fixture
def lab(project, monkeypatch):
    """The lab with old versions, on a host of v1.34.4 that answers."""
    (project.root / "Pulumi.lab.yaml").write_text(OLD)
    monkeypatch.setattr(releases, "date", SimpleNamespace(today=lambda: date(2026, 11, 29)))
    project.host = "v1.34.4"

    def open_host(stack):
        if not project.host:
            raise UnreachableError("it does not answer")
        return SimpleNamespace(get=lambda _: {"gitVersion": project.host}, close=lambda: None)

    monkeypatch.setattr(hosts, "host_of_stack", open_host)
    return project


def upgrade(lab, *options):
    ran = lab.run("upgrade", "--stack", "lab", "--json", *options)
    assert ran.code == 0, ran.refusal
    return json.loads(ran.out[ran.out.index("{") :])["steps"]  # behind what stderr says


def test_the_steps_to_the_newest_advised_versions(lab, texts):
    texts(lab.run("upgrade", "--stack", "lab").out.strip())


def test_the_steps_to_named_versions_of_all_parts(lab, texts):
    targets = ("--vcluster", "v0.35.3", "--host", "1.36", "--kubernetes", "v1.36.3")
    ran = lab.run("upgrade", "--stack", "lab", *targets, "--kai", "v0.17.0")
    assert ran.code == 0, ran.refusal
    texts(ran.out.strip())


def test_the_steps_can_be_taken_one_after_another_until_nothing_is_left(lab):
    """Each edit is one that the rules let through, from what was there before it."""
    file = lab.root / "Pulumi.lab.yaml"
    first = upgrade(lab)
    for number, step in enumerate(first):
        assert upgrade(lab) == first[number:], "a step that is taken is none any more"
        keys = ("config", *step["key"].split("."))
        file.write_text(with_value(file.read_text(), keys, step["after"], file.name))
        if step["part"] == "KAI":
            assert step["verify"] == "kai-fleet:teams.ml.scheduler.verify: true"
            keys = ("config", *step["verify"].removesuffix(": true").split("."))
            file.write_text(with_value(file.read_text(), keys, True, file.name))
        assert offline.plan_settings(parse(file.read_text(), file.name)).ok
    ran = lab.run("upgrade", "--stack", "lab")
    assert (ran.code, ran.out) == (0, "stack lab: nothing to do\n")


def test_only_the_teams_that_are_named_and_only_what_they_have(lab):
    parts = [(step["part"], step["team"]) for step in upgrade(lab, "--team", "dev")]
    assert parts == [("vCluster", "dev")] * 2 + [("Kubernetes", "dev")] * 2
    assert (
        "has no team nlp; its teams: dev, ml"
        in lab.run("upgrade", "--stack", "lab", "--team", "nlp").refusal
    )


def test_the_host_goes_up_one_minor_version_at_a_time_between_vclusters_and_kubernetes(lab):
    steps = upgrade(lab, "--host", "1.37")
    ups = [(step["before"], step["after"]) for step in steps if step["part"] == "host"]
    assert ups == [("v1.34.4", "v1.35.0"), ("v1.35.0", "v1.36.0"), ("v1.36.0", "1.37")]
    order = [step["part"] for step in steps]
    assert order == sorted(order, key=["vCluster", "host", "Kubernetes", "KAI"].index)
    assert steps[order.index("Kubernetes") - 1]["tried"] == (
        "never tried on real nodes: Kubernetes 1.37"
    )
    for there in ("1.34", "v1.34.4", "1.33"):
        assert upgrade(lab, "--host", there) == upgrade(lab)


def test_without_the_host_nothing_follows_from_its_version(lab):
    lab.host = ""
    (step,) = [step for step in upgrade(lab, "--host", "1.36") if step["part"] == "host"]
    assert (step["before"], step["after"]) == ("unknown", "1.36")


def test_a_kubernetes_in_the_charts_values_is_edited_there(lab):
    file = lab.root / "Pulumi.lab.yaml"
    values = "values: {controlPlane: {distro: {k8s: {image: {tag: v1.35.0}}}}}"
    file.write_text(OLD.replace("kubernetesVersion: v1.34.4", values))
    (step,) = [step for step in upgrade(lab) if step["part"] == "Kubernetes"]
    assert step["key"].endswith("vcluster.values.controlPlane.distro.k8s.image.tag")
    file.write_text(OLD.replace("kubernetesVersion: v1.34.4", values.replace("v1.35.0", "mine")))
    assert not [step for step in upgrade(lab) if step["part"] == "Kubernetes"]


@pytest.mark.parametrize(
    "options",
    [
        ("--vcluster", "v0.30.5"),
        ("--vcluster", "v0.99.0"),
        ("--kubernetes", "v1.33.4"),
        ("--kubernetes", "v1.37.0"),
        ("--kai", "v0.20.1"),
        ("--host", "1.36", "--vcluster", "v0.34.7"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_in_the_words_of_the_rules(lab, options, texts):
    file = lab.root / "Pulumi.lab.yaml"
    file.write_text(OLD.replace("v1.34.4", "v1.33.4"))
    lab.host = "v1.33.9"
    if "v1.33.4" in options:
        file.write_text(OLD)
    ran = lab.run("upgrade", "--stack", "lab", *options)
    assert ran.code == 1
    texts(ran.refusal)


def test_a_team_with_a_stack_of_its_own_edits_that_file(with_own):
    ran = with_own.run("upgrade", "--stack", "lab-vision", "--kai", "v0.16.8")
    assert "write kai-fleet:team.scheduler.version: v0.16.8" in ran.out
    assert "write kai-fleet:team.scheduler.verify: true" in ran.out
    assert "fleet team switch vision v0.16.8 --stack lab-vision" in ran.out
