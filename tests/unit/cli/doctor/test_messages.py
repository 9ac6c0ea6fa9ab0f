"""What the doctor makes of messages that were seen on real clusters: `messages.yaml` has them."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from kai_fleet_cli.doctor.faults import Affected
from kai_fleet_cli.doctor.messages import explain
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_policies.finding import sentence

pytestmark = pytest.mark.texts("doctor")

SEEN = YAML(typ="safe").load(Path(__file__).with_name("messages.yaml"))


def meaning(text):
    return explain(Affected(Cluster("ml"), "pod", "default/w"), [text])


@pytest.mark.parametrize("check", SEEN)
def test_a_message_that_was_seen_has_its_meaning(check, texts):
    found = [meaning(text) for text in SEEN[check]]
    assert {each.check for each in found} == {check}
    assert all(each.fix for each in found)
    texts(*(f"{each.cause}; {sentence(each.fix)}" for each in found))


@pytest.mark.timeout(20)
def test_a_long_message_of_a_tenant_takes_no_longer_and_another_means_nothing():
    assert meaning("failed calling webhook " * 40_000) is not None
    assert meaning("Successfully assigned default/a to ml-0") is None
