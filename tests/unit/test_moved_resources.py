"""What release 0.1.0 had elsewhere in a stack is said to the engine: it makes nothing anew.

That an engine finds it so, with the pods that stay: tests/engine/test_upgrade_namespaces.py.
"""

from __future__ import annotations

import pulumi
import pytest

from kai_fleet_cli.plan.recorder import record

CLUSTER = {"cluster": {"name": "lab", "context": "lab"}}
TREE = {"all": {"children": {"train": {"gpu": 2}}}}
VIRTUAL = {
    **CLUSTER,
    "teams": {
        "ml": {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": "ml"},
            "gpus": 2,
            "queues": TREE,
        }
    },
}
ON_HOST = {
    **CLUSTER,
    "kai": {"version": "v0.16.8"},
    "queues": TREE,
    "teams": {"ml": {"scheduler": {"mode": "host"}, "queue": "train", "gpus": 2}},
}
TEAM = "urn:pulumi:lab::kai-fleet::kai-fleet:index:Team$"
SPACE = f"{TEAM}kai-fleet:index:VirtualCluster$kubernetes:core/v1:Namespace::ml-namespace"
QUOTA = f"{TEAM}kubernetes:core/v1:ResourceQuota::ml-gpus"
GUARD = f"{TEAM}kai-fleet:index:QueueGuard::ml-guard"


@pytest.mark.parametrize(
    ("settings", "name", "then"),
    [
        (VIRTUAL, "ml-namespace", SPACE),
        (VIRTUAL, "ml-gpus", QUOTA),
        (ON_HOST, "ml-namespace", SPACE),
        (ON_HOST, "ml-gpus", QUOTA),
        (ON_HOST, "ml-queue-guard", GUARD),
    ],
)
def test_a_resource_that_moved_names_the_place_where_it_was(settings, name, then, monkeypatch):
    said = {}
    make = pulumi.Resource.__init__

    def noted(self, kind, called, custom, props=None, opts=None, *more, **named):
        said[called] = list(opts.aliases or ()) if opts else []
        make(self, kind, called, custom, props, opts, *more, **named)

    monkeypatch.setattr(pulumi.Resource, "__init__", noted)
    record("lab", settings)
    assert said[name] == [then]
