"""The sandbox of the fault tests, and what undisturbed runs leave: all others must leave that."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes import client, utils

from tests.faults import dumps
from tests.faults.case import Case, client_of
from tests.faults.desired import Reference, switched, with_ml, without_ml
from tests.temporary import temporary

# Somebody else's on the host: whatever happens to the stack, it stays as it is.
FOREIGN = """
apiVersion: v1
kind: Namespace
metadata: {name: someone-else, labels: {kai-fleet/team: someone-else}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs, namespace: someone-else}
data: {key: value}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: someone-else}
spec: {hard: {requests.nvidia.com/gpu: "3"}}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: someone-elses}
handler: runc
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: vc-someone-else}
rules: []
"""
PATHS = [
    "/api/v1/namespaces/someone-else",
    "/api/v1/namespaces/someone-else/configmaps/theirs",
    "/apis/node.k8s.io/v1/runtimeclasses/someone-elses",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/vc-someone-else",
]


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    created = Case.make(tmp_path_factory.mktemp("faults"))
    with temporary(created.sandbox):
        created.sandbox_up()
        _plant(created.host)
        yield created


@pytest.fixture(scope="session")
def reference(case: Case) -> Reference:
    """`dev` alone, with `ml` on v0.9.3, with `ml` on v0.16.8; removed, it is `dev` alone again."""
    found = Reference()
    for name, change in (
        ("alone", without_ml),
        ("added", with_ml),
        ("switched", switched),
    ):
        case.edit(change)
        case.up()
        found.host[name] = dumps.dump(case.host)
        if name in ("added", "switched"):
            found.inside[name] = dumps.dump(case.inside("ml"))
    found.host["removed"] = found.host["alone"]
    return found


@pytest.fixture
def foreign(case: Case) -> Iterator[None]:
    """Nobody touches what is somebody else's."""
    before = dumps.versions(case.host, PATHS)
    yield
    assert dumps.versions(case.host, PATHS) == before


def _plant(kubeconfig: Path) -> None:
    with client_of(kubeconfig) as api:
        assert isinstance(api, client.ApiClient)
        for document in yaml.safe_load_all(FOREIGN):
            if document["kind"] == "RuntimeClass":
                client.NodeV1Api(api).create_runtime_class(document)
            else:
                utils.create_from_dict(api, document)
