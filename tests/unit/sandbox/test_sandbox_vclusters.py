"""What the sandbox makes of a vCluster's chart: its configuration and its address."""

import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.control_plane.ports import FIRST, WINDOW, Ports, choose
from sandbox.vcluster import declared
from sandbox.vcluster.declared import parse, read


def config(text: str) -> Any:
    return parse(yaml.safe_load(text))


def test_the_keys_that_matter_are_read() -> None:
    found = config(
        """
        sync: {fromHost: {nodes: {enabled: true, selector: {labels: {pool: ml}}},
                          runtimeClasses: {enabled: true}}}
        controlPlane: {proxy: {extraSANs: [ml.team-ml.svc]},
                       distro: {k8s: {scheduler: {enabled: true}}}}
        exportKubeConfig: {context: mine, server: "https://ml.team-ml:443"}
        experimental: {syncSettings: {setOwner: false}}
        """
    )
    assert found.node_labels == {"pool": "ml"}
    assert found.scheduler
    assert found.runtime_classes
    assert found.extra_names == ("ml.team-ml.svc",)
    assert (found.context, found.server) == ("mine", "https://ml.team-ml:443")
    assert not found.set_owner
    assert found.problem is None


@pytest.mark.parametrize(
    "key",
    [
        "distro: {k8s: {scheduler: {enabled: true}}}",
        "advanced: {virtualScheduler: {enabled: true}}",
    ],
)
def test_a_virtual_scheduler_without_nodes_is_a_problem(key: str) -> None:
    assert "sync.fromHost.nodes.enabled" in str(config(f"controlPlane: {{{key}}}").problem)


def test_namespaced_resources_without_mappings_are_a_problem() -> None:
    block = (
        "sync: {fromHost: {customResources: {podgroups.scheduling.run.ai: {enabled: true, %s}}}}"
    )
    assert "podgroups.scheduling.run.ai" in str(config(block % "scope: Namespaced").problem)
    assert config(block % "scope: Cluster").problem is None
    mapped = "scope: Namespaced, mappings: {byName: {'': x}}"
    assert config(block % mapped).problem is None


@pytest.mark.parametrize("data", [{}, {"config.yaml": "@@@"}, None])
def test_an_unreadable_secret_is_a_problem_and_no_crash(data: Any) -> None:
    assert "config.yaml" in str(read({"data": data}).problem)


PORTS = Ports(FIRST)


def service(kind: str, **port: int) -> dict[str, Any]:
    return {"spec": {"type": kind, "ports": [{"name": "https", "port": 443, **port}]}}


def test_others_get_a_port_each_and_keep_it(tmp_path: Path) -> None:
    first = declared.choose_endpoint(service("ClusterIP"), PORTS, [], tmp_path / "first")
    second = declared.choose_endpoint(service("ClusterIP"), PORTS, [first], tmp_path / "second")
    assert first.port in PORTS.inner
    assert first != second
    # Also when another program could take it: the vCluster itself listens there now.
    with socket.create_server(("127.0.0.1", first.port)):
        assert (
            declared.choose_endpoint(service("ClusterIP"), PORTS, [], tmp_path / "first") == first
        )


def test_load_balancers_get_an_address_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declared, "free", lambda port, address="127.0.0.1": True)
    first = declared.choose_endpoint(service("LoadBalancer"), PORTS, [], tmp_path / "first")
    second = declared.choose_endpoint(service("LoadBalancer"), PORTS, [first], tmp_path / "second")
    assert (first.port, second.port) == (443, 443)
    assert first.address.startswith("127.")
    assert first.address != second.address
    assert (
        declared.choose_endpoint(service("LoadBalancer"), PORTS, [], tmp_path / "second") == second
    )


def test_no_right_to_port_443_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared, "free", lambda port, address="127.0.0.1": port != 443)
    found = declared.choose_endpoint(service("LoadBalancer"), PORTS, [], tmp_path / "kept")
    assert "NodePort" in str(found.problem)
    assert found.port in PORTS.inner


def test_a_window_with_a_port_in_use_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = choose()
    monkeypatch.setattr("random.randrange", lambda _: (taken.base - FIRST) // WINDOW)
    with socket.create_server(("127.0.0.1", taken.node_ports[7])):
        assert choose() != taken
