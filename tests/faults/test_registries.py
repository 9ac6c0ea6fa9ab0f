"""A chart registry that fails, dawdles, or gives other content than its digest says."""

import pytest

from sandbox.control_plane.certificates import Authority
from tests.faults.registry import Registry
from tests.faults.wanted import SOAK, converge, with_ml, without_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(900 if SOAK else 300)]


@pytest.fixture
def registry(case, tmp_path):
    authority = Authority(tmp_path)
    authority.ensure("a registry of the fault tests")
    pair = authority.server("registry", ["127.0.0.1", "localhost"])
    served = Registry(
        case.sandbox / "charts" / "kai-scheduler-v0.9.3.tgz", pair.certificate, pair.key
    )
    case.environment = {
        "SSL_CERT_FILE": str(authority.pair.certificate),
        "HELM_CACHE_HOME": str(tmp_path / "helm"),
    }
    yield served
    case.environment = {}
    served.close()


def test_a_registry_in_every_mood(case, reference, foreign, registry):
    """The update says what is wrong and changes nothing; once the registry is well, it goes on."""
    case.edit(without_ml)
    converge(case)

    def mirrored(config):
        with_ml(config)
        config["kai-fleet:teams"]["ml"]["scheduler"]["chart"] = registry.chart
        home = registry.chart.partition("@")[0].rpartition("/")[0]
        config["kai-fleet:sources"] = {"charts": [home]}

    case.edit(mirrored)
    for mood, words in (
        ("error", "a chart cannot be had from its registry"),
        ("another", "gives other content for that digest"),
    ):
        registry.mood = mood
        failed = case.fleet("up")
        assert registry.asked, "the registry was not asked"
        assert failed.code == 1
        assert "Traceback" not in failed.said
        assert words in failed.last, failed.said
    registry.mood = "slow"
    converge(case)
    assert reference.differences(case, "added") == []
