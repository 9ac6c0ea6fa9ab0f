"""Pulumi's gRPC stubs, without the cost of the whole SDK.

The stubs are part of the `pulumi` package, whose `__init__` imports the complete
SDK (half a second and 25 MB for each plugin process). A plugin needs none of it,
so a plugin process imports the stubs past the package's `__init__`. Any other
process, a test for one, imports them in the ordinary way.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path


def _is_plugin_process() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith(("sandbox.providers.", "provider."))


def _bare_package(name: str, directory: Path) -> None:
    package = types.ModuleType(name)
    package.__path__ = [str(directory)]
    package.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    sys.modules[name] = package


if _is_plugin_process() and "pulumi" not in sys.modules:
    _found = importlib.util.find_spec("pulumi")
    if _found is not None and _found.origin is not None:
        _root = Path(_found.origin).parent
        _bare_package("pulumi", _root)
        _bare_package("pulumi.runtime", _root / "runtime")

from pulumi.runtime.proto import (  # noqa: E402
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

__all__ = [
    "engine_pb2",
    "engine_pb2_grpc",
    "plugin_pb2",
    "provider_pb2",
    "provider_pb2_grpc",
    "status_pb2",
]
