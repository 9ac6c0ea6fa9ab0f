"""A team alone, and a vCluster alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.isolation.team_namespace import TeamNamespaceArgs
from kai_fleet.package.construct.request import Request, Result
from kai_fleet.releases import KAI
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.teams import Team as TeamSettings
from kai_fleet.team import Team, TeamArgs
from kai_fleet.vcluster.virtual_cluster import VirtualCluster, VirtualClusterArgs
from kai_fleet_policies.rules.charts import sources_known
from kai_fleet_policies.rules.vclusters import vcluster_flags, vcluster_isolation

_OF_TEAM: Final = frozenset(it.alias or name for name, it in TeamSettings.model_fields.items())
NEWEST: Final[str] = list(KAI)[-1]
# What is asked of a vCluster without a team.
_OF_VALUES: Final = (sources_known, vcluster_flags, vcluster_isolation)


def team(asked: Request) -> Result:
    """A team on a host that is somebody else's, or that this program has elsewhere."""
    asked.arguments()
    raw, name = asked.given.raw, asked.name
    access = asked.access()
    own = {key: value for key, value in raw.items() if key in _OF_TEAM}
    stack: dict[str, Any] = {
        "cluster": raw["cluster"],
        "teams": {name: own},
        **{key: raw[key] for key in ("kai", "guard") if key in raw},
        **asked.sources(),
    }
    if "gpuResource" in raw:
        stack["gpu"] = {"resource": raw["gpuResource"]}
    if "kai" in raw and "queue" in raw:
        # The host's tree is somebody else's; what is known of it is this leaf.
        stack["queues"] = {raw["queue"]: {"gpu": {"quota": raw.get("gpus", 0)}}}
    settings = asked.settings(stack, {f"teams.{name}": ""})
    of = fleet_of(settings, asked.deployed).teams[name]
    args = TeamArgs(of, access, asked.deployed)
    if "namespace" in raw:
        args = replace(args, namespace=asked.given.input("namespace"))
    else:
        args = replace(args, place=TeamNamespaceArgs(access, of))
    made = Team(name, args, asked.on_cluster())
    inside = made.vcluster
    return made, {
        "namespace": inside.namespace,
        "server": inside.server,
        "kubeconfig": inside.kubeconfig,
        "version": settings.teams[name].scheduler.version,
        "queues": made.queues,
    }


def virtual_cluster(asked: Request) -> Result:
    """A vCluster in a namespace that is there."""
    args, name = asked.arguments(), asked.name
    own = ("version", "kubernetesVersion", "chart", "values", "access", "untested", "licensed")
    scheduler = {"mode": args.mode}
    if args.mode == "virtual":
        scheduler["version"] = NEWEST
    # Who made the namespace gave the vCluster its rights; else its chart does.
    isolation = Isolation() if args.prepared else Isolation(level="off")
    stack = {
        "cluster": asked.given.raw["cluster"],
        "teams": {
            name: {
                "scheduler": {"mode": "default"},
                "nodePool": args.node_pool,
                "vcluster": {key: asked.given.raw[key] for key in own if key in asked.given.raw},
                "isolation": {"level": isolation.level},
            }
        },
        **asked.sources(),
    }
    places = {f"teams.{name}.vcluster": "", f"teams.{name}": ""}
    settings = asked.settings(stack, places, rules=_OF_VALUES)
    of = fleet_of(settings, asked.deployed).teams[name]
    made = VirtualCluster(
        name,
        VirtualClusterArgs(
            asked.access(),
            replace(of, mode=args.mode, control_pool=args.control_pool),
            namespace=asked.given.input("namespace"),
            deployed=asked.deployed,
        ),
        asked.on_cluster(),
    )
    return made, {
        "namespace": made.namespace,
        "server": made.server,
        "kubeconfig": made.kubeconfig,
        "version": made.version,
    }
