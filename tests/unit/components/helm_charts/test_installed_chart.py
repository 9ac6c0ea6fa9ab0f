"""What Helm read of a chart is held against what the release is for; without an engine."""

import asyncio
import logging

import pulumi
import pytest
from pulumi.runtime import mocks
from pulumi.runtime.stack import wait_for_rpcs
from pulumi_kubernetes.helm import v3 as helm

from kai_fleet.helm_charts import installed_chart

WANTED = ("vcluster", "0.36.1")


class Read(mocks.Mocks):
    """The provider's answer: what stood in the Chart.yaml."""

    def __init__(self, version, status):
        self.outputs = {"version": version} | ({"status": status} if status else {})

    def new_resource(self, args):
        return "team-ml/ml", {**args.inputs, **self.outputs}

    def call(self, args):
        return {}


def ended(version, status=None, *, preview=False, times=1, installed=None):
    """What a run says that has such releases; the messages of the log, and the error at its end."""
    reported: list[str] = []

    class Log(logging.Handler):
        def emit(self, record):
            reported.append(record.getMessage())

    logger = logging.Logger("test", logging.ERROR)
    logger.addHandler(Log())
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.set_exception_handler(lambda _, context: reported.append(str(context)))
    pulumi.runtime.mocks.set_mocks(Read(version, status), preview=preview, logger=logger)
    try:
        for number in range(times):
            release = helm.Release(f"ml-{number}", chart="oci://x.example/vcluster", version="1")
            installed_chart.hold_to(f"VirtualCluster ml-{number}", release, *WANTED, installed)
        loop.run_until_complete(wait_for_rpcs())
    except pulumi.RunError as error:
        return reported, str(error)
    finally:
        loop.close()
        asyncio.set_event_loop(None)
    return reported, ""


@pytest.mark.parametrize("version", ["0.36.1", "v0.36.1"])
def test_the_chart_that_it_is_for_passes(version):
    assert ended(version, {"chart": "vcluster", "status": "deployed"})[1] == ""
    assert ended(version, preview=True)[1] == ""


@pytest.mark.parametrize("preview", [True, False])
def test_another_version_ends_a_preview_before_anything_is_installed(preview):
    _, error = ended("25.3.0", preview=preview)
    assert "VirtualCluster ml-0 has a chart whose version is 25.3.0, and not 0.36.1 of" in error
    assert "write another `chart`, drop it, or" in error


def test_an_update_that_leaves_the_release_out_finds_what_is_installed():
    """A preview leaves nothing out."""
    assert ended("0.35.0", installed="0.35.0")[1] == ""
    assert "whose version is 0.35.0" in ended("0.35.0", preview=True, installed="0.35.0")[1]
    assert "whose version is 25.3.0" in ended("25.3.0", installed="0.35.0")[1]


def test_another_name_ends_the_run_that_installed_it_and_each_later_one():
    _, error = ended("0.36.1", {"chart": "gpu-operator", "version": "0.36.1"})
    assert "VirtualCluster ml-0 has the chart gpu-operator, and not vcluster 0.36.1" in error
    assert ended("0.36.1", {"chart": "gpu-operator"}, preview=True)[1] == error


def test_several_end_the_run_once_and_without_a_traceback():
    reported, error = ended("25.3.0", {"chart": "gpu-operator"}, times=3)
    assert error
    assert "Traceback" not in str(reported) and "never retrieved" not in str(reported)
