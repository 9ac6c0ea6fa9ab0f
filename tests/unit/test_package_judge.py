"""Who judges a component of the package: the rules that are installed beside it."""

from importlib import metadata

import pytest

from kai_fleet.fleet.deployed_state import DeployedState
from kai_fleet.package import plugin
from kai_fleet.package.request import by_types
from kai_fleet.provider import PluginError
from kai_fleet_policies import component_judge

TREE = {"ml": {"gpu": {"quota": 1}, "children": {"train": {"gpu": {"quota": 2}}}}}
STACK = {
    "cluster": {"name": "lab", "context": "lab"},
    "kai": {"version": "v0.16.8"},
    "queues": TREE,
}


def test_it_is_the_rules_package():
    assert plugin.installed_judge() is component_judge.judge


def test_without_rules_a_component_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setattr(metadata, "entry_points", lambda group: ())
    plugin.installed_judge.cache_clear()
    with pytest.raises(PluginError, match="pip install kai-fleet-policies"):
        plugin.installed_judge()


def test_rules_refuse_what_types_let_through():
    refused = list(component_judge.judge(STACK, DeployedState(), "stack").refused)
    assert any(it.path.startswith("kai-fleet:queues.ml") for it in refused)
    assert not list(by_types(STACK, DeployedState(), "stack").refused)


def test_a_vcluster_alone_is_not_judged_by_rules_about_queues():
    assert not list(component_judge.judge(STACK, DeployedState(), "vcluster").refused)
