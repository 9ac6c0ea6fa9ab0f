"""What is on a cluster goes with what the cluster is, and is not deleted one by one."""

from __future__ import annotations

import pulumi

from kai_fleet.provider import QUEUES


def going_with(cluster: pulumi.Resource) -> pulumi.ResourceTransformation:
    """For a component: all that it declares, but for what goes with something nearer already."""

    def transform(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        is_on_it = args.type_.startswith(("kubernetes:", "command:", QUEUES))
        if not is_on_it or args.opts.deleted_with is not None or args.opts.id is not None:
            return None
        with_it = pulumi.ResourceOptions(deleted_with=cluster)
        return pulumi.ResourceTransformationResult(
            args.props, pulumi.ResourceOptions.merge(args.opts, with_it)
        )

    return transform
