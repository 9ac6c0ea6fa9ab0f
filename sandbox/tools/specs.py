"""What is known of a tool: which versions will do, and where its binaries come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Say = Callable[[str], None]
Version = tuple[int, ...]


class ToolError(RuntimeError):
    """A tool cannot be had; the text is a sentence for a user and says what to do."""


@dataclass(frozen=True)
class Release:
    """A publisher's archive, or bare binary when `members` holds an empty path.

    `url` has the places {version}, {os} and {arch}; `arches` renames an architecture where the
    publisher has a name of its own. `sums` maps a platform such as `linux/amd64` to a SHA-256 or
    SHA-512 in hex. A platform in `published_for` has no pinned sum: the publisher's own checksum
    file at `published` is read instead, which guards against a broken transfer but not against a
    compromised publisher.
    """

    version: str
    url: str
    members: Mapping[str, str]
    sums: Mapping[str, str] = field(default_factory=dict)
    arches: Mapping[str, str] = field(default_factory=dict)
    published: str = ""
    published_for: tuple[str, ...] = ()

    def offers(self, platform: str) -> bool:
        """Whether there is an archive for a platform that can be verified."""
        return platform in self.sums or platform in self.published_for

    def address(self, platform: str) -> str:
        """Where the archive for a platform is."""
        return self._fill(self.url, platform)

    def checksums_address(self, platform: str) -> str:
        """Where the publisher's own checksum file is."""
        return self._fill(self.published, platform)

    def archive_members(self, platform: str) -> dict[str, str]:
        """File name to path inside the archive, for a platform."""
        return {name: self._fill(path, platform) for name, path in self.members.items()}

    def _fill(self, template: str, platform: str) -> str:
        system, arch = platform.split("/")
        arch = self.arches.get(arch, arch)
        return template.format(version=self.version, os=system, arch=arch)


@dataclass(frozen=True)
class GoBuild:
    """How to build from source: `binaries` maps a file name to its package.

    `module` is a folder of `sandbox/go`; `go` the oldest Go release that compiles it;
    `module_version` is that of the Go module where it counts otherwise than the bundle;
    `variables` are set by the linker, which is how Go programs learn their version; `tags` choose
    what is compiled; `scripts` maps a file name to a path inside a Go module, for what is not
    compiled; `minutes` is a rough time on two cores, told to whoever waits.
    """

    module: str
    binaries: Mapping[str, str]
    go: tuple[int, int]
    minutes: int
    variables: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    module_version: str = ""
    scripts: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Bundle:
    """Tools that come together: from one archive, or from one go.

    `version` is what `builds` make; a release may be newer. With `one_folder` all the files go
    where the first tool is, because it looks for the others beside itself.
    """

    title: str
    version: str
    tools: tuple[str, ...]
    release: Release | None = None
    builds: tuple[GoBuild, ...] = ()
    one_folder: bool = False

    def folder(self, tool: str, version: str) -> str:
        """The name of the cache folder that holds a tool."""
        return f"{self.tools[0] if self.one_folder else tool}-{version}"


@dataclass(frozen=True)
class PathCheck:
    """What a tool on PATH must answer: `oldest` <= version < `below`.

    `ask` are the arguments that make it print its version. Without them it is a Pulumi plugin
    (`plugin`), asked over its protocol, or a `companion` that ships with another tool and is taken
    when that one is; for a companion, `below` is the first version of the other tool that does
    without it.
    """

    oldest: Version
    below: Version
    ask: tuple[str, ...] = ()
    plugin: bool = False
    companion: str = ""

    def accepts(self, version: Version) -> bool:
        """Whether this version will do."""
        return self.oldest <= version < self.below

    def needed_by(self, version: Version) -> bool:
        """Whether a companion is needed by the other tool in this version."""
        return not self.below or version < self.below
