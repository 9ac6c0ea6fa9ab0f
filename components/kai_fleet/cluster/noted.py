"""Labels and annotations of a stack file on every Kubernetes object below a component."""

from collections.abc import Mapping
from typing import Final

import pulumi

# Of a pod's annotations the guards let few domains through, and by those of an account clouds give
# their rights.
_LABELLED_ONLY: Final = ("kubernetes:core/v1:Pod", "kubernetes:core/v1:ServiceAccount")


def noted(
    opts: pulumi.ResourceOptions | None,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> pulumi.ResourceOptions | None:
    """The options of a component whose objects have them; what an object has itself stays.

    What a Helm chart makes has those of the chart's values.
    """
    if not labels and not annotations:
        return opts

    def note(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        metadata = args.props.get("metadata")
        if not args.type_.startswith("kubernetes:") or not isinstance(metadata, Mapping):
            return None
        notes = {} if args.type_ in _LABELLED_ONLY else annotations
        more = {"labels": labels, "annotations": notes}
        of_both = {key: {**it, **(metadata.get(key) or {})} for key, it in more.items() if it}
        props = {**args.props, "metadata": {**metadata, **of_both}}
        return pulumi.ResourceTransformationResult(props, args.opts)

    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(transformations=[note]))
