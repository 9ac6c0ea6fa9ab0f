"""How a backup reaches the host of a stack whose file has an encrypted kubeconfig."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from kai_fleet_cli import hosts
from kai_fleet_cli.backups.host import host_of
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading

CLUSTER = {"server": "https://127.0.0.1:1"}
KUBECONFIG = {
    "clusters": [{"name": "a", "cluster": CLUSTER}],
    "users": [{"name": "a", "user": {"token": "t"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "current-context": "a",
}


@pytest.fixture(autouse=True)
def stack_file(monkeypatch):
    """A stack that names no context."""
    cluster = SimpleNamespace(context=None, kind=None, name="lab")
    settings = SimpleNamespace(cluster=cluster, platform_facts=None)
    monkeypatch.setattr(reading, "usable_settings_of", lambda _: settings)


def test_kubectl_gets_the_kubeconfig_in_a_file_that_is_gone_afterwards(monkeypatch):
    text = yaml.safe_dump(KUBECONFIG)
    monkeypatch.setattr(hosts, "pulumi_output", lambda *_: text)
    with host_of("lab") as host:
        file = Path(host.environment["KUBECONFIG"])
        assert file.read_text() == text
        assert file.stat().st_mode & 0o777 == 0o600
        assert host.kubectl[1:] == ()
        assert host.api.host == CLUSTER["server"]
    assert not file.exists()


def test_a_kubeconfig_that_cannot_be_read_is_one_sentence(monkeypatch):
    def fail(*_):
        raise OSError("no pulumi")

    monkeypatch.setattr(hosts, "pulumi_output", fail)
    says = r"the host of stack lab: .*run `pulumi login`"
    with pytest.raises(UserError, match=says), host_of("lab"):
        pass
