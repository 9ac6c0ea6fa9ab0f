"""VirtualClusterBackup: CronJobs that back a vCluster up, and check what they keep."""

import json
from pathlib import Path
from typing import cast

from pulumi import ComponentResource, CustomResource, Resource, ResourceOptions

from kai_fleet.backup.arguments import VirtualClusterBackupArgs as VirtualClusterBackupArgs
from kai_fleet.declaring.argument_check import camel, check
from kai_fleet.declaring.options import child_options, component_options, depending_on
from kai_fleet.declaring.yaml_files import fill
from kai_fleet.isolation.policies import Object
from kai_fleet.manifests import type_of
from kai_fleet.releases import DEFAULT_VCLUSTER, vcluster
from kai_fleet.releases.chart_values import values_of
from kai_fleet.releases.sources import BACKUP_IMAGES
from kai_fleet.vcluster.chart_values import images

# The defaults of arguments.
_DEFAULTS = {
    "namespace": "backups",
    "secret": "kai-fleet-backup",
    "schedule": "0 */6 * * *",
    "verify": "0 4 * * 0",
    "keep": 28,
    "node_selector": {},
    **BACKUP_IMAGES,
}
_CLAIM = "claim/"
_FOLDER = Path(__file__).parent
_SCRIPTS = tuple(_FOLDER.glob("scripts/*.sh"))


class VirtualClusterBackup(ComponentResource):
    """CronJobs that back up the vCluster of the component's name with restic, and verify it.

    Namespace and Secret have to exist. The Jobs read the vCluster by `kubectl exec`, with a right
    that only their account has.

    Raises:
        pulumi.RunError: an argument is not one that it takes.
        UnknownVersionError: the release table lacks the version of the vCluster.
    """

    def __init__(
        self, name: str, args: VirtualClusterBackupArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__(
            "kai-fleet:index:VirtualClusterBackup", name, None, component_options(opts)
        )
        check(f"VirtualClusterBackup {name}", VirtualClusterBackupArgs, args)
        child = child_options(self, opts)
        objects = _objects(name, args)
        objects["account"]["metadata"]["annotations"] = args.get("account_annotations", {})
        namespace = args.get("vcluster_namespace", f"team-{name}")
        objects["role"]["metadata"]["namespace"] = namespace
        objects["binding"]["metadata"]["namespace"] = namespace
        scripts = {path.name: path.read_text(encoding="utf-8") for path in _SCRIPTS}
        # A store starts in a vCluster with an empty configuration.
        objects["scripts"]["data"] = {**scripts, "config.yaml": "", "namespace": namespace}
        if not args.get("verify", True):
            del objects["checks"]
        declared = list[Resource]()
        for part, manifest in objects.items():
            after_others = depending_on(child, *declared)
            declared.append(
                CustomResource(type_of(manifest), f"{name}-backup-{part}", manifest, after_others)
            )
        self.register_outputs({})


def _objects(name: str, args: VirtualClusterBackupArgs) -> dict[str, Object]:
    """The objects of jobs.yaml for the arguments.

    Raises UnknownVersionError for a version that the release table lacks.
    """
    release = vcluster(args.get("vcluster_version", DEFAULT_VCLUSTER), untested=True)
    target = args["to"]
    volume: dict[str, object] = {"emptyDir": {}}
    if target.startswith(_CLAIM):
        volume = {"persistentVolumeClaim": {"claimName": target.removeprefix(_CLAIM)}}
        target = "/repository"
    values = {
        **_DEFAULTS,
        **images(values_of("vcluster", ["open source"], {}), release),
        **args,
        "to": f"{target.rstrip('/')}/{name}",
        "vcluster_version": release.version,
        "volume": {"name": "repository", **volume},
    }
    # What may be an Output is no text of the file.
    texts = {camel(f"_{key}"): json.dumps(value, default=repr) for key, value in values.items()}
    content = fill(_FOLDER / "jobs.yaml", {"Name": name, **texts})
    return cast(dict[str, dict[str, Object]], content)["objects"]
