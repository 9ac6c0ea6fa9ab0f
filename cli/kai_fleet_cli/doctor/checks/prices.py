"""Prices of GPUs: a model that no node has, and a node whose model has no price."""

from kai_fleet.settings.sections.monitoring import DEFAULT, PRODUCT
from kai_fleet.wording import listed, nearest_first
from kai_fleet_cli.doctor.cluster_state import Findings, Snapshot

_KEY = "kai-fleet:prices.gpuHour"


def check(snapshot: Snapshot) -> Findings:
    """The host's nodes of a stack with prices."""
    host, prices = snapshot.host, snapshot.host.wanted.prices
    if prices is None or "nodes" in host.unreadable:
        return
    nodes = [node for node in host.all("nodes") if node.gpus(host.wanted.gpu_resource)]
    models = sorted({model for node in nodes if (model := node.labels.get(PRODUCT))})
    unknown = [model for model in prices.gpu_hour if model not in (DEFAULT, *models)]
    for model in unknown:
        yield host.warning(
            f"{_KEY}.{model}",
            f"no node has it at its label {PRODUCT}: nothing is counted at this price",
            f"write {listed(nearest_first(model, models))}, drop it, or leave it for nodes to come"
            if models
            else f"label the nodes: `{host.kubectl} label node <node> {PRODUCT}={model}`",
        )
    for model in models:
        if prices.of(model) is None:
            yield host.warning(
                f"GPUs of model {model}",
                "they have no price: what they cost is in no report",
                f"write their price at {_KEY}.{model}, or one for all others at {_KEY}.{DEFAULT}",
            )
    without = [node.name for node in nodes if PRODUCT not in node.labels]
    if without and prices.of("") is None:
        yield host.warning(
            f"model of the GPUs of {listed(without, 'and')}",
            f"no label {PRODUCT} tells it, so they have no price",
            f"write a price at {_KEY}.{DEFAULT}, or label the nodes:"
            f" `{host.kubectl} label node {without[0]} {PRODUCT}=<model>`",
        )
    if not unknown and all(prices.of(node.labels.get(PRODUCT, "")) is not None for node in nodes):
        yield host.well("prices of GPUs")
