"""The table of tools, `table.yaml`: accepted versions, and where binaries come from."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml
from pydantic import TypeAdapter

KUBERNETES_PROVIDER: Final = "pulumi-resource-kubernetes"
COMMAND_PROVIDER: Final = "pulumi-resource-command"
LANGUAGE_HOST: Final = "pulumi-language-python"
YAML_HOST: Final = "pulumi-language-yaml"

PROGRESS_SECONDS: Final = 15.0  # between two messages of progress
Say = Callable[[str], None]
Version = tuple[int, ...]


class ToolError(RuntimeError):
    """A tool cannot be had; the text is a sentence for a user and says what to do."""


@dataclass(frozen=True)
class Release:
    """A publisher's archive, or bare binary when `members` holds an empty path.

    `url` has the places {version}, {os} and {arch}; `arches` renames an architecture where the
    publisher has a name of its own. `sums` maps a platform such as `linux/amd64` to a SHA-256 or
    SHA-512 in hex. Where a platform has no pinned sum, the publisher's own checksum file at
    `published` is read instead, which guards against a broken transfer but not against a
    compromised publisher.
    """

    version: str
    url: str
    members: dict[str, str]
    sums: dict[str, str] = field(default_factory=dict)
    arches: dict[str, str] = field(default_factory=dict)
    published: str = ""

    def filled(self, template: str, platform: str) -> str:
        """An address or a path inside the archive, for a platform."""
        system, arch = platform.split("/")
        arch = self.arches.get(arch, arch)
        return template.format(version=self.version, os=system, arch=arch)

    def address(self, platform: str) -> str:
        """The address of the archive for a platform."""
        return self.filled(self.url, platform)


@dataclass(frozen=True)
class GoBuild:
    """How to build from source: `binaries` maps a file name to its package.

    `module` is a folder of `sandbox/go`; `go` the oldest Go release that compiles it;
    `module_version` is that of the Go module where it counts otherwise than the bundle;
    `variables` are set by the linker, which is how Go programs learn their version; `tags` choose
    what is compiled; `copies` maps a file name to a Go module and a path in it, for what is not
    compiled; `embeds` does so for JSON that our own main package embeds; `minutes` is a rough time
    on two cores, told to whoever waits.
    """

    module: str
    binaries: dict[str, str]
    go: Version
    minutes: int
    variables: dict[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    module_version: str = ""
    copies: dict[str, tuple[str, str]] = field(default_factory=dict)
    embeds: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class PathCheck:
    """The accepted versions of a tool on PATH: `oldest` <= version < `below`.

    `ask` are the arguments that make it print its version. A `companion` ships with another tool
    and is taken when that one is. What is neither is a Pulumi plugin, asked over its protocol. What
    is `tests_only` no sandbox needs.
    """

    oldest: Version = ()
    below: Version = ()
    ask: tuple[str, ...] = ()
    companion: str = ""
    tests_only: bool = False

    def accepts(self, version: Version) -> bool:
        """Whether this version is in the range."""
        return self.oldest <= version < self.below


@dataclass(frozen=True)
class Bundle:
    """Tools that come together: from one archive, or from one go.

    `version` is what `builds` make; a release may be newer. With `one_folder` all the files go
    where the first tool is, because it looks for the others beside itself.
    """

    title: str
    version: str
    tools: dict[str, PathCheck]
    release: Release | None = None
    builds: tuple[GoBuild, ...] = ()
    one_folder: bool = False

    @property
    def first(self) -> str:
        """The tool that stands for all of them."""
        return next(iter(self.tools))

    def folder(self, tool: str, version: str) -> str:
        """The name of the cache folder that holds a tool."""
        return f"{self.first if self.one_folder else tool}-{version}"


BUNDLES: Final = TypeAdapter(tuple[Bundle, ...]).validate_python(
    yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
)
ON_PATH: Final = {name: check for bundle in BUNDLES for name, check in bundle.tools.items()}
