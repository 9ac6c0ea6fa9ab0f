"""Whose a Helm release is that stands in the way: nobody is told to delete somebody else's."""

import base64
import gzip
import json

import pytest

from tests.unit.cli.recovery.test_held_up import RELEASE, STACK, line_of
from tests.unit.components.cluster.canned_api import serving

SECRETS = "/api/v1/namespaces/team-ml/secrets"
WORDS = "cannot re-use a name that is still in use"
INPUTS = {"name": "ml", "namespace": "team-ml", "chart": "oci://ghcr.io/loft-sh/charts/vcluster"}


def record(content):
    packed = base64.b64encode(gzip.compress(json.dumps(content).encode()))
    return {"data": {"release": base64.b64encode(packed).decode()}}


def of_chart(name):
    return record({"name": "ml", "chart": {"metadata": {"name": name}}})


def told(status, *records):
    """What the end of an update says of team ml, whose release has these records."""
    release = {"urn": RELEASE, "type": "kubernetes:helm.sh/v3:Release", "inputs": INPUTS}
    release |= {"provider": f"{STACK}x::host::id"}
    with serving() as (api, url):
        api.answers = {SECRETS: (status, {"items": list(records)})}
        return line_of(WORDS, RELEASE, [release], host=url)


@pytest.mark.parametrize("records", [[of_chart("vcluster")], [of_chart("vcluster")] * 2, []])
def test_a_record_of_our_chart_is_what_a_killed_run_left(records):
    line = told(200, *records)
    assert "a run or a removal that was cut off left its Helm release ml" in line
    assert "-n team-ml delete secret -l owner=helm,name=ml" in line


@pytest.mark.parametrize(
    "records", [[of_chart("postgresql")], [of_chart("vcluster"), of_chart("postgresql")]]
)
def test_a_record_of_another_chart_is_left_to_its_owner(records):
    line = told(200, *records)
    assert "Helm release ml of namespace team-ml is there already" in line
    assert "postgresql" in line
    assert "delete" not in line


@pytest.mark.parametrize(
    ("status", "records"),
    [
        (403, []),
        (200, [{"data": {"release": "%%%"}}]),
        (200, [{"data": {}}]),
        (200, [{}]),
        (200, [record([1])]),
        (200, [record({"chart": {"metadata": {"name": "x; rm -rf /"}}})]),
        (200, [record({"pad": "0" * (9 << 20), "chart": {"metadata": {"name": "vcluster"}}})]),
    ],
)
def test_a_record_that_cannot_be_read_is_no_ground_to_delete_it(status, records):
    line = told(status, *records)
    assert "its record cannot be read" in line
    assert "delete" not in line
    assert "rm -rf" not in line
