"""Other spellings of what is denied: volumes, addresses, annotations, variables (T17)."""

from typing import Any

from tests.attacks.attempts.attempt import EVERY_MODE, Attempt, env
from tests.attacks.objects import (
    config_map,
    container,
    endpoint_slice,
    endpoints,
    pod,
    secret,
    service,
)

_VOLUMES: dict[str, Any] = {
    "nfs": {"server": "10.0.0.1", "path": "/"},
    "iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:x", "lun": 0},
    "fc": {"targetWWNs": ["50060e801049cfd1"], "lun": 0},
    "rbd": {"monitors": ["10.0.0.1"], "image": "x"},
    "cephfs": {"monitors": ["10.0.0.1"]},
    "glusterfs": {"endpoints": "x", "path": "y"},
    "awsElasticBlockStore": {"volumeID": "vol-1"},
    "gcePersistentDisk": {"pdName": "x"},
    "azureFile": {"secretName": "x", "shareName": "y"},
    "vsphereVolume": {"volumePath": "x"},
    "portworxVolume": {"volumeID": "x"},
    "flexVolume": {"driver": "x/y"},
    "gitRepo": {"repository": "https://example.com/x"},
}
_ADDRESSES = {
    "leading zeros": ("010.1.2.3", "IPv4"),
    "a leading zero in the last number": ("8.8.8.08", "IPv4"),
    "IPv4 in IPv6": ("::ffff:10.1.2.3", "IPv6"),
    "IPv4 in IPv6, in numbers": ("::ffff:a01:203", "IPv6"),
    "NAT64": ("64:ff9b::a01:203", "IPv6"),
    "6to4": ("2002:a01:203::1", "IPv6"),
    "Teredo": ("2001:0:a01:203::1", "IPv6"),
    "a private network of IPv6": ("fd00::12", "IPv6"),
    "capitals": ("2606:4700::ABCD", "IPv6"),
    "a cloud's metadata of IPv6": ("fd00:ec2::254", "IPv6"),
    "a network of providers": ("100.64.0.1", "IPv4"),
    "Azure's own server": ("168.63.129.16", "IPv4"),
}
# Kubernetes itself takes these in Endpoints, and not in slices.
_NO_SLICE = ("IPv4 in IPv6", "IPv4 in IPv6, in numbers", "capitals", "leading zeros")
_RUNTIMES = (
    *("userns-mode.crio.io", "cpu-quota.crio.io/main", "seccomp-profile.kubernetes.cri-o.io"),
    *("run.oci.handler", "run.oci.keep_original_groups", "run.oci.hooks.stderr"),
    *("dev.gvisor.spec.mount.x.source", "dev.gvisor.flag.debug"),
    *("io.katacontainers.config.runtime.internetworking_model", "io.containerd.runc.v2.x"),
    *("nvidia.com/container.main.gpus.devices", "nvidia.com/use-gpuuuid", "nvidia.com/vgpu-mode"),
    *("hami.io/vgpu-devices-to-allocate", "4pd.io/vgpu-devices-allocated"),
    *("scheduling.koordinator.sh/device-allocated", "tencent.com/predicate-gpu-idx-0"),
    *("memory-qos.nri.io", "class.memory-qos.nri.io", "resource-policy.nri.io/annotated"),
    *("huawei.com/Ascend910", "fpga.intel.com/region", "io.containers.trace-syscall"),
    *("rdt.resources.beta.kubernetes.io/pod", "blockio.resources.beta.kubernetes.io/pod"),
    *("org.criu.config", "volcano.sh/gpu-index", "ALIYUN_COM_GPU_MEM_IDX"),
)
_NETWORKS = (
    *("cni.projectcalico.org/ipAddrs", "cni.projectcalico.org/ipv4pools"),
    *("egress.projectcalico.org/selector", "k8s.ovn.org/pod-networks"),
    *("ovn.kubernetes.io/logical_switch", "net1.default.ovn.kubernetes.io/ip_address"),
    *("ipam.cilium.io/ip-pool", "io.cilium.no-track-port", "network.cilium.io/x"),
    *("networking.gke.io/interfaces", "networking.gke.io/default-interface"),
    *("vpc.amazonaws.com/pod-eni", "ipam.antrea.io/ippools", "ipam.spidernet.io/ippool"),
    *("whereabouts.cni.cncf.io/x", "danm.k8s.io/interfaces"),
)
_VARIABLES = (
    *("METAX_VISIBLE_DEVICES", "MTHREADS_VISIBLE_DEVICES", "CAMBRICON_VISIBLE_DEVICES"),
    *("NEURON_RT_VISIBLE_CORES", "AWS_NEURON_VISIBLE_DEVICES", "XPU_VISIBLE_DEVICES"),
    *("NVIDIA_NVSWITCH", "NVIDIA_MOFED", "NVIDIA_GDS", "NVIDIA_GDRCOPY"),
    *("NVIDIA_MIG_MONITOR_DEVICES", "ASCEND_VNPU_SPECS", "ASCEND_RUNTIME_OPTIONS"),
)
_ASK = "drop the variable and ask for nvidia.com/gpu in resources.limits"

SPELLINGS = [
    *(
        Attempt(
            f"a volume of the node's network: {kind}",
            EVERY_MODE,
            lambda t, k=kind, s=source: pod(t, volumes=[{"name": "v", k: s}]),
            "isolation.volumes",
        )
        for kind, source in _VOLUMES.items()
    ),
    Attempt(
        "a volume of a kind that is not granted, beside one that is",
        ("mig",),
        lambda t: pod(
            t,
            volumes=[
                {"name": "a", "nfs": _VOLUMES["nfs"]},
                {"name": "b", "iscsi": _VOLUMES["iscsi"]},
            ],
        ),
        "has the volume b",
    ),
    *(
        Attempt(
            f"another team's pod by {what}",
            EVERY_MODE,
            lambda _, a=address: endpoints(a),
            "write a Service with a selector",
        )
        for what, (address, _) in _ADDRESSES.items()
    ),
    *(
        Attempt(
            f"another team's pod in a slice by {what}",
            EVERY_MODE,
            lambda _, a=address, k=kind: endpoint_slice(a, kind=k),
            "write a Service with a selector",
        )
        for what, (address, kind) in _ADDRESSES.items()
        if what not in _NO_SLICE
    ),
    Attempt(
        "another team's Service in a slice of names",
        EVERY_MODE,
        lambda _: endpoint_slice("web.team-ml.svc.cluster.local", kind="FQDN"),
        "write a Service with a selector",
    ),
    Attempt(
        "a public name that may lead here",
        EVERY_MODE,
        lambda _: service(type="ExternalName", externalName="x.example.com", selector=None),
        "isolation.network.endpoints: true",
    ),
    *(
        Attempt(
            f"more of the runtime by {key}",
            EVERY_MODE,
            lambda t, k=key: pod(t, annotations={k: "x"}),
            "isolation.annotations",
        )
        for key in _RUNTIMES
    ),
    Attempt(
        "another plugin of NRI than the one that is granted",
        ("mig",),
        lambda t: pod(t, annotations={"cpu-qos.nri.io": "x"}),
        "isolation.annotations",
    ),
    Attempt(
        "a domain that only ends like the one that is granted",
        ("mig",),
        lambda t: pod(t, annotations={"evil-memory-qos.nri.io": "x"}),
        "isolation.annotations",
    ),
    *(
        Attempt(
            f"another network by {key}",
            EVERY_MODE,
            lambda t, k=key: pod(t, annotations={k: "x"}),
            "isolation.network.attachments: true",
        )
        for key in _NETWORKS
    ),
    *(
        Attempt(
            f"devices by {name}",
            EVERY_MODE,
            lambda t, n=name: pod(t, container(env=[env("all", n)])),
            _ASK,
        )
        for name in _VARIABLES
    ),
    *(
        Attempt(
            f"devices by {name} of a {what}",
            EVERY_MODE,
            lambda _, m=made, n=name: m(**{n: "all"}),
            "name the key otherwise",
        )
        for name in ("METAX_VISIBLE_DEVICES", "NEURON_RT_VISIBLE_CORES", "NVIDIA_MOFED")
        for what, made in (("ConfigMap", config_map), ("Secret", secret))
    ),
    Attempt(
        "the end of the name by a key",
        EVERY_MODE,
        lambda _: config_map(VISIBLE_DEVICES="all"),
        "name the key otherwise",
    ),
    Attempt(
        "most of the name by a key",
        EVERY_MODE,
        lambda _: config_map(_VISIBLE_DEVICES="all"),
        "name the key otherwise",
    ),
    *(
        Attempt(
            f"the beginning of the name by the prefix {prefix}",
            EVERY_MODE,
            lambda t, p=prefix: pod(
                t, container(envFrom=[{"prefix": p, "configMapRef": {"name": "c"}}])
            ),
            "use another prefix",
        )
        for prefix in ("METAX_VIS", "METAX_VISIBLE_", "NEURON_RT_VISIBLE_COR", "NVIDIA_G", "XPU_V")
    ),
]
