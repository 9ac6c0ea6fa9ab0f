"""The step that ends a team's pods before its namespace goes."""

from __future__ import annotations

import pytest
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from components.probes import pods


@pytest.fixture
def namespace(monkeypatch):
    """The pods of a namespace, and those that were told to end."""
    monkeypatch.setenv("PODS_NAMESPACE", "team-ml")
    monkeypatch.setattr(pods, "cluster", client.ApiClient)
    names, told = ["gone", "a", "b"], []

    def listed(_, space, **__):
        assert space == "team-ml"
        items = [client.V1Pod(metadata=client.V1ObjectMeta(name=name)) for name in names]
        return client.V1PodList(items=items)

    def delete(_, name, space, **__):
        if name == "gone":
            raise ApiException(status=404)
        told.append((space, name))

    monkeypatch.setattr(client.CoreV1Api, "list_namespaced_pod", listed)
    monkeypatch.setattr(client.CoreV1Api, "delete_namespaced_pod", delete)
    return told


def test_every_pod_is_told_to_end(namespace):
    pods.main()
    assert namespace == [("team-ml", "a"), ("team-ml", "b")]


@pytest.mark.parametrize(
    "why", [ApiException(status=403, reason="Forbidden"), urllib3.exceptions.HTTPError("no")]
)
def test_what_hinders_it_does_not_hinder_the_removal(namespace, monkeypatch, capsys, why):
    def refused(*_, **__):
        raise why

    monkeypatch.setattr(client.CoreV1Api, "list_namespaced_pod", refused)
    pods.main()
    assert "pods of team-ml are left to Kubernetes" in capsys.readouterr().err
