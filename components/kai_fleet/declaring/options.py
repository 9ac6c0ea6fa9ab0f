"""The resource options that components give their children."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TypedDict, Unpack

from pulumi import (
    Output,
    ProviderResource,
    Resource,
    ResourceOptions,
    ResourceTransformationArgs,
    ResourceTransformationResult,
)

from kai_fleet.declaring.inputs import Labels
from kai_fleet.names import RELEASE

# Types of objects that get no annotations: guards admit few domains on pods, and clouds grant IAM
# roles by annotations of ServiceAccounts.
_LABELLED_ONLY = ("kubernetes:core/v1:Pod", "kubernetes:core/v1:ServiceAccount")


class ChildOptions(TypedDict, total=False):
    """Options of a child that do not follow from its component's."""

    provider: ProviderResource | None
    retain_on_delete: bool
    delete_before_replace: bool
    replace_on_changes: list[str]
    ignore_changes: list[str]


@contextmanager
def source_positions() -> Iterator[None]:
    """Limit the stack trace that the SDK records for each resource to the line that declares it.

    The SDK sends the complete call stack with each resource. The engine (from v3.195) keeps it in
    the state, shows it nowhere, and writes it again twice for each changed resource: with 15 teams
    of 20 resources the state was twice as large and an update took twice as long. The SDK (3.272)
    has no option for this; `sys.tracebacklimit`, which this sets while it is open, limits it.
    """
    before = getattr(sys, "tracebacklimit", 1000)  # Python's default
    sys.tracebacklimit = 7  # six frames are the SDK's own
    try:
        yield
    finally:
        sys.tracebacklimit = before


def component_options(opts: ResourceOptions | None) -> ResourceOptions:
    """Options for the component itself: without `depends_on`, which its children get instead.

    With --continue-on-error the engine skips a component that depends on a failed resource, and all
    of its children with it. If one of them is a provider that exists, the engine (v3.274) panics.
    """
    unordered = copy(opts or ResourceOptions())
    unordered.depends_on = None
    return unordered


def child_options(
    component: Resource,
    opts: ResourceOptions | None,
    *,
    ordered: bool = True,
    **more: Unpack[ChildOptions],
) -> ResourceOptions:
    """Options for a child, with `depends_on` and `deleted_with` from its component's options.

    All others of these it has only as the SDK passes them on from a parent. `opts` are those of the
    component, None if it has none; `more` is for the child alone.
    `ordered=False` leaves out `depends_on`, for a child that depends on another child that has it:
    the component itself has none, as `component_options` says.
    """
    opts = opts or ResourceOptions()
    return ResourceOptions(
        parent=component,
        depends_on=opts.depends_on if ordered else None,
        deleted_with=opts.deleted_with,
        **more,
    )


def depending_on(opts: ResourceOptions, *dependencies: Resource) -> ResourceOptions:
    """The same options with these resources added to `depends_on`."""
    return ResourceOptions.merge(opts, ResourceOptions(depends_on=list(dependencies)))


def adding_labels(
    opts: ResourceOptions | None,
    labels: Labels,
    annotations: Labels,
) -> ResourceOptions:
    """Options for a component that add labels and annotations to the Kubernetes objects below it.

    `opts` stays as it is; None is no options. Without labels and annotations nothing is added.
    Labels and annotations that an object has already win. Pods and ServiceAccounts get labels only.
    An Output or an ObjectMetaArgs as `metadata` gets nothing; an Output as labels is a TypeError.
    Objects of a Helm chart are not reached; they get theirs by chart values.
    """
    opts = opts or ResourceOptions()
    if not labels and not annotations:
        return opts

    def add_notes(
        args: ResourceTransformationArgs,
    ) -> ResourceTransformationResult | None:
        """A transformation that adds them to `metadata`.

        None for other types, and if `metadata` is no mapping: absent, an Output or an
        ObjectMetaArgs. Raises TypeError if its labels or annotations are an Output.
        """
        metadata = args.props.get("metadata")
        if not args.type_.startswith("kubernetes:") or not isinstance(metadata, Mapping):
            return None
        merged = dict(metadata)
        if labels:
            merged["labels"] = {**labels, **(metadata.get("labels") or {})}
        if annotations and args.type_ not in _LABELLED_ONLY:
            merged["annotations"] = {**annotations, **(metadata.get("annotations") or {})}
        props = {**args.props, "metadata": merged}
        return ResourceTransformationResult(props, args.opts)

    return ResourceOptions.merge(opts, ResourceOptions(transformations=[add_notes]))


def hide_values(
    args: ResourceTransformationArgs,
) -> ResourceTransformationResult | None:
    """A transformation that makes the values of a Helm release secret; None for other resources.

    Raises KeyError for a release without values; each of ours has some.
    """
    if args.type_ != RELEASE:
        return None
    props = {**args.props, "values": Output.secret(args.props["values"])}
    return ResourceTransformationResult(props, args.opts)
