"""Backups of the control planes of teams."""

from typing import Annotated

from pydantic import Field

from kai_fleet_stack.settings.sections.kubernetes import LabelKey, LabelValue, ObjectName
from kai_fleet_stack.settings.sections.models import NO_KEYS, Grants, Mistakes, Strict, like, refuse

# Of the hours `hours_between` reads the step; Kubernetes judges the rest.
Schedule = Annotated[
    str,
    Grants.NOTHING,
    like(r"^(\S+ (\*(/[1-9][0-9]?)?|[0-9][-,/0-9]*) \S+ \S+ \S+)?$"),
]
Target = Annotated[
    str,
    refuse(lambda to: "@" in to, "has a user in it; write credentials into backup.secret alone"),
    like(r"^(claim/[a-z0-9.-]+|s3:https?://[^\s@]+|(gs|azure):[a-z0-9._-]+:/[^\s@]*)$", 300),
]
Image = Annotated[str, like(r"^\S+$")]  # a rule says where images may come from
Place = Annotated[ObjectName, Grants.OTHER]


class Backup(Strict):
    """Backups of a team's control plane. Keys that a team leaves out are read from
    `kai-fleet:backup`.
    """

    described_by = ("backup.arguments.VirtualClusterBackupArgs",)

    to: Target | None = None
    schedule: Schedule = "0 */6 * * *"
    keep: Annotated[int, Field(ge=0, le=10_000), Grants.NOTHING] = 28
    namespace: Place = "backups"
    secret: Place = "kai-fleet-backup"
    verify: Schedule = "0 4 * * 0"
    account_annotations: Annotated[dict[LabelKey, str], Grants.OTHER] = NO_KEYS
    node_selector: Annotated[dict[LabelKey, LabelValue], Grants.NOTHING] = NO_KEYS
    kubectl_image: Image | None = None
    restic_image: Image | None = None

    def mistakes(self) -> Mistakes:
        """No target. The section has the stack's keys already."""
        if self.to is None:
            fix = "write s3:https://…/BUCKET, gs:…, azure:… or claim/NAME"
            yield "to", f"is missing: where backups go; {fix}"
