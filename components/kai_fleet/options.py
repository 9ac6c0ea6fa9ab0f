"""The options of a component's children."""

from typing import Any

import pulumi


def child_of(
    component: pulumi.Resource, opts: pulumi.ResourceOptions | None, **more: Any
) -> pulumi.ResourceOptions:
    """Options of a child: it waits for what its component waits for, and is deleted with the same.

    `more` are further options, by their names.
    """
    opts = opts or pulumi.ResourceOptions()
    return pulumi.ResourceOptions(
        parent=component, depends_on=opts.depends_on, deleted_with=opts.deleted_with, **more
    )


def after(opts: pulumi.ResourceOptions, *before: pulumi.Resource) -> pulumi.ResourceOptions:
    """The same options, for a resource that also waits for `before`."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(before)))
