"""The sandbox's tools as data: the pins, and how each tool is found, fetched or built.

Checksums were taken from public records other than the download itself: Kubernetes' own
CHANGELOG-1.34 (sha512), Kubespray's checksum table (etcd, agreeing with the sums others record),
Pulumi's Homebrew tap (the CLI, written by Pulumi's release job), and the pins that several public
repositories agree on (Helm, KWOK). No such record was found for the two Pulumi plugins nor for
KWOK on linux/arm64; see `published` and the lines below.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sandbox.tools.specs import Bundle, GoBuild, PathCheck, Release

ETCD: Final = "3.6.5"
KUBERNETES: Final = "1.34.4"
KWOK: Final = "0.8.0"
HELM: Final = "3.22.0"
# What the Go module proxy builds; the release is the newest one whose checksums are recorded.
PULUMI: Final = "3.190.0"
PULUMI_RELEASE: Final = "3.259.0"
# A plugin must be of the version that its SDK asks for (pyproject.toml).
PULUMI_KUBERNETES: Final = "4.34.2"
PULUMI_COMMAND: Final = "1.2.1"

PROMETHEUS: Final = "3.13.5"

KUBERNETES_PROVIDER: Final = "pulumi-resource-kubernetes"
COMMAND_PROVIDER: Final = "pulumi-resource-command"
POLICY_LAUNCHER: Final = "pulumi-analyzer-policy-python"
LANGUAGE_HOST: Final = "pulumi-language-python"
YAML_HOST: Final = "pulumi-language-yaml"  # for the tests alone: an example is a program in YAML

_SERVER_PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_EVERYWHERE = ("linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64")

_ETCD = Bundle(
    title="etcd",
    version=ETCD,
    tools=("etcd",),
    release=Release(
        version=ETCD,
        url="https://github.com/etcd-io/etcd/releases/download/v{version}/etcd-v{version}-{os}-{arch}.tar.gz",
        members={"etcd": f"etcd-v{ETCD}-{{os}}-{{arch}}/etcd"},
        sums={
            "linux/amd64": "66bad39ed920f6fc15fd74adcb8bfd38ba9a6412f8c7852d09eb11670e88cac3",
            "linux/arm64": "7010161787077b07de29b15b76825ceacbbcedcb77fe2e6832f509be102cab6b",
        },
    ),
    builds=(GoBuild("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}, go=(1, 24), minutes=1),),
)

_KUBERNETES = Bundle(
    title="Kubernetes",
    version=KUBERNETES,
    tools=_SERVER_PARTS,
    # Servers are published for Linux only; elsewhere they are built.
    release=Release(
        version=KUBERNETES,
        url="https://dl.k8s.io/v{version}/kubernetes-server-{os}-{arch}.tar.gz",
        members={name: f"kubernetes/server/bin/{name}" for name in _SERVER_PARTS},
        sums={
            "linux/amd64": "65c75e81e3ea488f6d42b493cad64d7577ddfa1e5372037a1c841ac069039997"
            "d359b5b2f2d44e7665bf04c48ed0065cf9d4c9801b1e63bb6a1b099ef00d4863",
            "linux/arm64": "a1fad7060ed67b5634f32f3256a295179dd887dab5c82b8550c2eb62c69df34c"
            "fbb311c8f93e7608d558eba32b9e2ddc23976db39e512fd747cc6bf9b4c1765f",
        },
    ),
    builds=(
        GoBuild(
            "kubernetes",
            {name: f"k8s.io/kubernetes/cmd/{name}" for name in _SERVER_PARTS},
            go=(1, 24),
            minutes=6,
            variables={
                f"{package}.{variable}": value
                for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
                for variable, value in {
                    "gitVersion": f"v{KUBERNETES}",
                    "gitMajor": KUBERNETES.split(".")[0],
                    "gitMinor": KUBERNETES.split(".")[1],
                    "gitTreeState": "clean",
                }.items()
            },
        ),
    ),
)

_KWOK = Bundle(
    title="KWOK",
    version=KWOK,
    tools=("kwok",),
    release=Release(
        version=KWOK,
        url="https://github.com/kubernetes-sigs/kwok/releases/download/v{version}/kwok-{os}-{arch}",
        members={"kwok": ""},
        sums={
            "linux/amd64": "f5a4385a2ae1b9dd7f8acae18e002a75c0ebba124ae9d7259aa8dadb50711f46",
            "darwin/arm64": "69a064ec98d37844d9d742b5b28ff57825659a983ccc3e208daa6948b94d64ba",
        },
    ),
    builds=(GoBuild("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, go=(1, 26), minutes=2),),
)

_HELM = Bundle(
    title="Helm",
    version=HELM,
    tools=("helm",),
    release=Release(
        version=HELM,
        url="https://get.helm.sh/helm-v{version}-{os}-{arch}.tar.gz",
        members={"helm": "{os}-{arch}/helm"},
        sums={
            "linux/amd64": "1e4ab49e429626cf6c6958d914248b78c9730803c2751b87627e171dc800e7bb",
            "linux/arm64": "f14e804dfee240f55525b667488fe9adca349e63e00c9af634c0beb1421ac310",
            "darwin/amd64": "bd1d09f316558dda23698527859600936fed1371021ce0f2272d66b2fdcfa69c",
            "darwin/arm64": "4c9982a6cdeb458b60258df66b55398ca5b19293f6877faffe2909ad6f23dfe0",
        },
    ),
    builds=(
        GoBuild(
            "helm",
            {"helm": "helm.sh/helm/v3/cmd/helm"},
            go=(1, 26),
            minutes=1,
            variables={"helm.sh/helm/v3/internal/version.version": f"v{HELM}"},
        ),
    ),
)

_PULUMI = Bundle(
    title="Pulumi",
    version=PULUMI,
    tools=("pulumi", LANGUAGE_HOST, POLICY_LAUNCHER, YAML_HOST),
    one_folder=True,  # the CLI warns of a host or a launcher that is not beside it
    release=Release(
        version=PULUMI_RELEASE,
        url="https://github.com/pulumi/pulumi/releases/download/v{version}/pulumi-v{version}-{os}-{arch}.tar.gz",
        members={
            name: f"pulumi/{name}"
            for name in ("pulumi", LANGUAGE_HOST, f"{LANGUAGE_HOST}-exec", YAML_HOST)
        },
        arches={"amd64": "x64"},
        sums={
            "linux/amd64": "94ba357acac23d01474084c4b00098dc0f7bc70ce13f34c777459254a5f718e5",
            "linux/arm64": "edc8327463a72160bb36cf82cf5062da9c8a244290a706d9980988e7bf486853",
            "darwin/amd64": "eaca4c3b8277bfa3ab061fa3b270d1c66358a0b2e613da8c5587a04b7226c534",
            "darwin/arm64": "57c27f179e527e2cf9f62b841a448af72a020e44b2fb4ee0d9bd85556c00c864",
        },
    ),
    builds=(
        GoBuild(
            "pulumi",
            {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
            go=(1, 24),
            minutes=4,
            variables={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{PULUMI}"},
        ),
        # After v3.79 the language host became a module of its own that is not published. The old
        # one still serves: what the CLI asks of it has not changed.
        GoBuild(
            LANGUAGE_HOST,
            {LANGUAGE_HOST: "github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python"},
            go=(1, 24),
            minutes=1,
            scripts={
                f"{LANGUAGE_HOST}-exec": (
                    f"github.com/pulumi/pulumi/sdk/v3@v{PULUMI}",
                    f"python/cmd/{LANGUAGE_HOST}-exec",
                )
            },
        ),
        GoBuild(
            YAML_HOST,
            {YAML_HOST: "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml"},
            go=(1, 24),
            minutes=4,
        ),
    ),
)

# For the tests alone: what Monitoring declares is held against a real one.
_PROMETHEUS = Bundle(
    title="Prometheus",
    version=PROMETHEUS,
    tools=("prometheus", "promtool"),
    release=Release(
        version=PROMETHEUS,
        url="https://github.com/prometheus/prometheus/releases/download/v{version}/prometheus-{version}.{os}-{arch}.tar.gz",
        members={
            name: f"prometheus-{PROMETHEUS}.{{os}}-{{arch}}/{name}"
            for name in ("prometheus", "promtool")
        },
        published="https://github.com/prometheus/prometheus/releases/download/v{version}/sha256sums.txt",
        published_for=_EVERYWHERE,
    ),
    builds=(
        GoBuild(
            "prometheus",
            {
                name: f"github.com/prometheus/prometheus/cmd/{name}"
                for name in ("prometheus", "promtool")
            },
            go=(1, 26),
            minutes=2,
            # Of all the places where it looks for targets, Kubernetes is enough.
            module_version="0.313.5",  # 3.13.5, as Go modules count
            tags=("netgo", "remove_all_sd", "enable_kubernetes_sd"),
            variables={"github.com/prometheus/common/version.Version": PROMETHEUS},
        ),
    ),
)


def _plugin(title: str, name: str, repository: str, version: str) -> Bundle:
    base = f"https://github.com/pulumi/{repository}/releases/download/v{{version}}"
    return Bundle(
        title=title,
        version=version,
        tools=(name,),
        release=Release(
            version=version,
            url=f"{base}/{name}-v{{version}}-{{os}}-{{arch}}.tar.gz",
            members={name: name},
            published=f"{base}/{repository}_{{version}}_checksums.txt",
            published_for=_EVERYWHERE,
        ),
    )


BUNDLES: Final[tuple[Bundle, ...]] = (
    _ETCD,
    _KUBERNETES,
    _KWOK,
    _HELM,
    _PULUMI,
    _PROMETHEUS,
    _plugin(
        "Pulumi's Kubernetes provider", KUBERNETES_PROVIDER, "pulumi-kubernetes", PULUMI_KUBERNETES
    ),
    _plugin("Pulumi's Command provider", COMMAND_PROVIDER, "pulumi-command", PULUMI_COMMAND),
)

# The control plane's parts are taken from PATH only in the release line that is tested, and kubectl
# may be one line off, which is what Kubernetes supports.
ON_PATH: Final[Mapping[str, PathCheck]] = MappingProxyType(
    {
        "etcd": PathCheck((3, 6), (3, 7), ("--version",)),
        "kube-apiserver": PathCheck((1, 34), (1, 35), ("--version",)),
        "kube-controller-manager": PathCheck((1, 34), (1, 35), ("--version",)),
        "kube-scheduler": PathCheck((1, 34), (1, 35), ("--version",)),
        "kubectl": PathCheck((1, 33), (1, 36), ("version", "--client")),
        "kwok": PathCheck((0, 7), (0, 9), ("--version",)),
        "helm": PathCheck((3, 17), (4,), ("version", "--short")),
        "pulumi": PathCheck((3, 190), (4,), ("version",)),
        LANGUAGE_HOST: PathCheck((), (), companion="pulumi"),
        YAML_HOST: PathCheck((), (), companion="pulumi"),
        # From 3.221 on the language host runs policy packs, and no archive holds a launcher.
        POLICY_LAUNCHER: PathCheck((), (3, 221), companion="pulumi"),
        # Distributions leave Kubernetes out of what they build of version 2.
        "prometheus": PathCheck((3, 8), (4,), ("--version",)),
        "promtool": PathCheck((3, 8), (4,), ("--version",)),
        KUBERNETES_PROVIDER: PathCheck((4, 34, 2), (5,), plugin=True),
        COMMAND_PROVIDER: PathCheck((1, 2, 1), (2,), plugin=True),
    }
)
