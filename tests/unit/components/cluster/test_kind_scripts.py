"""The way to a kind cluster, and within its node, with recording stand-ins for what it calls."""

import re
import shutil
import subprocess

import pytest
import yaml

from tests.unit.components.cluster.kind_standins import LDCONFIG, SCRIPTS, SMI, Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "machine")


@pytest.fixture
def gpu_machine(machine):
    machine.with_gpu()
    return machine


def made_from(machine):
    return yaml.safe_load((machine.state / "kind.yaml").read_text())


def test_the_scripts_are_clean_under_shellcheck():
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed here")
    scripts = sorted(str(path) for path in SCRIPTS.glob("*.sh"))
    found = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")
    assert len(scripts) == 4


def test_a_machine_without_a_gpu_gets_a_cluster_for_processors(machine):
    done = machine.run("create")
    assert (done.returncode, done.stdout) == (0, "apiVersion: v1\nkind: Config\n")
    assert "no GPU here (nvidia-smi is not installed): the cluster is CPU only" in done.stderr
    calls = [re.sub(r"--config \S+", "--config FILE", call) for call in machine.calls()]
    assert calls[:3] == [
        "docker info",
        "kind get clusters",
        "kind create cluster --name lab --config FILE --wait 180s",
    ]
    assert re.fullmatch(
        r"docker exec lab-control-plane sh -c echo [0-9a-f]{64} no >/etc/kai-fleet-made-from",
        calls[3],
    )
    assert calls[4:] == ["kind get kubeconfig --name lab"]
    (node,) = made_from(machine)["nodes"]
    ports = {port["hostPort"]: port["listenAddress"] for port in node["extraPortMappings"]}
    assert ports == dict.fromkeys(range(30000, 30008), "127.0.0.1")


def test_the_driver_is_mounted_into_the_node_and_the_toolkit_set_up_there(gpu_machine):
    done = gpu_machine.run("create")
    assert done.returncode == 0, done.stderr
    assert "GPUs of this machine: 1" in done.stderr
    (node,) = made_from(gpu_machine)["nodes"]
    assert node["labels"] == {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.memory": "24564",  # of the smaller one: KAI takes them for alike
    }
    mounts = {mount["hostPath"]: mount["containerPath"] for mount in node["extraMounts"]}
    assert mounts.pop(str(gpu_machine.bin / "nvidia-smi")) == "/usr/bin/nvidia-smi"
    library = mounts.pop(str(gpu_machine.directory / "libnvidia-ml.so.565.77"))
    assert re.fullmatch(r"/usr/lib/\w+-linux-gnu/libnvidia-ml\.so\.565\.77", library)
    assert mounts == {
        str(gpu_machine.devices / name): f"/dev/{name}"
        for name in ("nvidia0", "nvidiactl", "nvidia-uvm")
    }
    assert "docker exec lab-control-plane bash -c #!/usr/bin/env bash" in gpu_machine.calls()
    script = (gpu_machine.state / "node-script").read_text()
    assert script == (SCRIPTS / "node_gpus.sh").read_text()


def test_gpus_go_to_the_first_worker_alone(tmp_path):
    kind = {
        "workers": [{"kai-fleet/pool": "ml"}, {}],
        "image": "kindest/node:v1.34.0",
        "nodePorts": 1,
    }
    machine = Machine(tmp_path / "machine", kind=kind)
    machine.with_gpu()
    assert machine.run("create").returncode == 0
    control, first, second = made_from(machine)["nodes"]
    assert {"kai-fleet/pool", "nvidia.com/gpu.present"} <= set(first["labels"])
    assert "extraMounts" in first
    assert "extraMounts" not in control
    assert second == {"role": "worker", "image": "kindest/node:v1.34.0"}
    assert len(control["extraPortMappings"]) == 1
    assert "docker exec lab-worker bash -c #!/usr/bin/env bash" in machine.calls()


def test_gpus_can_be_left_alone(tmp_path):
    machine = Machine(tmp_path / "machine", kind={"gpus": "none"})
    machine.with_gpu()
    assert machine.run("create").returncode == 0
    assert not [call for call in machine.calls() if call.startswith("nvidia-smi")]
    assert "extraMounts" not in made_from(machine)["nodes"][0]


def test_a_second_run_makes_nothing_anew(gpu_machine):
    gpu_machine.run("create")
    gpu_machine.calls()
    done = gpu_machine.run("create")
    assert (done.returncode, done.stdout) == (0, "apiVersion: v1\nkind: Config\n")
    calls = gpu_machine.calls()
    assert not [call for call in calls if "create" in call or "docker start" in call]
    assert "docker exec lab-control-plane bash -c #!/usr/bin/env bash" in calls, (
        "the node may have been restarted"
    )


def test_a_stopped_node_is_started(machine):
    machine.run("create")
    (machine.state / "stopped").touch()
    machine.calls()
    assert machine.run("create").returncode == 0
    assert "docker start lab-control-plane" in machine.calls()


def test_a_cluster_made_without_gpus_stays_so_and_says_how_to_change_it(machine):
    machine.run("create")
    machine.with_gpu()
    done = machine.run("create")
    assert done.returncode == 0
    assert "was made without GPUs and stays so; destroy the stack" in done.stderr


def test_another_configuration_is_refused_before_anything_is_touched(machine):
    machine.run("create")
    machine.kind = {"nodePorts": 3}
    machine.calls()
    done = machine.run("create")
    assert done.returncode == 1
    assert "kai-fleet:cluster.kind was changed" in done.stderr
    assert "fleet destroy" in done.stderr
    assert not [call for call in machine.calls() if "delete" in call or "create" in call]


def test_a_cluster_of_that_name_that_is_not_ours_is_left_alone(machine):
    (machine.state / "clusters").write_text("lab\n")
    (machine.state / "nodes").write_text("lab-control-plane\n")
    done = machine.run("create")
    assert done.returncode == 1
    assert "kind delete cluster --name lab" in done.stderr
    assert not [call for call in machine.calls() if call.startswith("kind delete")]


def gpus_all(machine, smi=None):
    machine.kind = {"gpus": "all"}
    if smi:
        machine.put("nvidia-smi", smi)


def with_gpu(machine, then):
    machine.with_gpu()
    then(machine)


NO_DRIVER = "echo 'NVIDIA-SMI has failed to talk to the driver' ; exit 9\n"
NO_GPU = "echo 'No devices were found'\n"
NODE_FAILS = """case "$*" in
  *' bash -c '*) echo 'nvidia-smi does not work in the node' >&2; exit 1 ;;
esac
"""


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda m: m.without("docker"), "needs Docker, which is not installed here: install it"),
        (
            lambda m: m.fail("docker info"),
            "its daemon does not answer: start it (sudo systemctl start docker)",
        ),
        (lambda m: m.without("kind"), "needs kind, which is not installed here: install it"),
        (
            lambda m: m.fail("kind create"),
            "kind could not make cluster lab; its lines above say why",
        ),
        (gpus_all, "gpus is all, but nvidia-smi is not installed: install NVIDIA's driver"),
        (
            lambda m: gpus_all(m, NO_DRIVER),
            "nvidia-smi fails: NVIDIA-SMI has failed to talk to the driver",
        ),
        (lambda m: gpus_all(m, NO_GPU), "but nvidia-smi lists no GPU"),
        (
            lambda m: with_gpu(m, lambda m: (m.devices / "nvidia0").unlink()),
            "write kai-fleet:cluster.kind.gpus: none, or use minikube",
        ),
        (
            lambda m: with_gpu(m, lambda m: m.libraries("libc.so.6 (libc6,x86-64) => /lib/l.so")),
            "ldconfig lists no libnvidia-ml.so: install the driver's libraries",
        ),
        (
            lambda m: with_gpu(m, lambda m: m.libraries("libnvidia-ml.so.1 (libc6) => /lib32/l")),
            "ldconfig lists no libnvidia-ml.so",
        ),
        (
            lambda m: with_gpu(m, lambda m: m.fail("ldconfig -p")),
            "`ldconfig -p` fails: ldconfig: -p broke",
        ),
        (
            lambda m: with_gpu(m, lambda m: m.put("docker", NODE_FAILS)),
            "GPUs cannot be used in lab-control-plane; the line above says why",
        ),
    ],
)
def test_each_failure_has_its_sentence_and_prints_no_kubeconfig(machine, broken, says):
    broken(machine)
    done = machine.run("create")
    assert (done.returncode, done.stdout) == (1, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_cluster_goes_with_the_stack(machine):
    machine.run("create")
    machine.calls()
    assert machine.run("delete").returncode == 0
    assert machine.calls() == ["docker info", "kind delete cluster --name lab"]
    machine.fail("kind delete")
    done = machine.run("delete")
    assert done.returncode == 1
    assert "kind cluster lab cannot be deleted; the line above says why" in done.stderr


RUNTIME = (
    "nvidia-ctk runtime configure --runtime=containerd --set-as-default --config-source=command"
)
KEY = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"


@pytest.fixture
def node(tmp_path):
    """A node with the driver mounted and nothing else."""
    machine = Machine(tmp_path / "node")
    machine.put("nvidia-smi", SMI)
    machine.put("ldconfig", LDCONFIG)
    machine.put("curl", "echo key\n")
    machine.put("gpg", "cat >/dev/null\n")
    machine.put("containerd", 'cat "$STATE/containerd" 2>/dev/null || true\n')
    machine.put("systemctl")
    machine.put("crictl")
    # Installing the toolkit is what brings nvidia-ctk; the list of sources goes to no real /etc.
    machine.put(
        "apt-get",
        'case "$*" in *nvidia-container-toolkit) cp "$STATE/nvidia-ctk" "${0%/*}/" ;; esac\n',
    )
    machine.put("nvidia-ctk", 'echo \'default_runtime_name = "nvidia"\' >"$STATE/containerd"\n')
    (machine.bin / "nvidia-ctk").rename(machine.state / "nvidia-ctk")
    return machine


@pytest.fixture
def run(node, tmp_path):
    """The script with the node's /etc in a folder of the test's."""
    sources = tmp_path / "sources.list"
    text = (SCRIPTS / "node_gpus.sh").read_text()
    script = text.replace("/etc/apt/sources.list.d/nvidia-container-toolkit.list", str(sources))
    assert script != text

    def ran():
        return subprocess.run(
            ["bash", "-s"],
            input=script,
            env={**node.environment(), "NODE_WAIT_SECONDS": "1"},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    ran.sources = sources
    return ran


def test_the_toolkit_is_installed_and_made_containerds_default(node, run):
    done = run()
    assert done.returncode == 0, done.stderr
    calls = node.calls()
    assert calls[:2] == ["ldconfig ", "nvidia-smi -L"]
    piped = {"curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey"}
    piped.add(f"gpg --dearmor --yes -o {KEY}")
    assert [call for call in calls[2:] if call not in piped] == [
        "apt-get update",
        "apt-get install -y --no-install-recommends ca-certificates curl gpg",
        "apt-get update",
        "apt-get install -y --no-install-recommends nvidia-container-toolkit",
        "containerd config dump",
        RUNTIME,
        "systemctl restart containerd",
        "crictl info",
    ]
    assert piped <= set(calls)
    assert run.sources.read_text() == (
        f"deb [signed-by={KEY}] https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n"
    )


def test_a_node_that_is_set_up_is_only_checked(node, run):
    run()
    node.calls()
    assert run().returncode == 0
    expected = ["ldconfig ", "nvidia-smi -L", "containerd config dump", "crictl info"]
    assert node.calls() == expected


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("nvidia-smi -L", "nvidia-smi does not work in the node. After a new driver"),
        ("apt-get update", "apt-get update fails in the node: it needs Debian's mirrors"),
        ("apt-get install", "curl and gpg cannot be installed in the node"),
        ("curl -fsSL", "the node cannot fetch https://nvidia.github.io/libnvidia-container/gpgkey"),
        ("nvidia-ctk runtime", "nvidia-ctk cannot configure containerd in the node"),
        ("systemctl restart", "containerd does not start again in the node"),
        ("crictl info", "containerd does not answer in the node: journalctl -u containerd"),
    ],
)
def test_each_step_that_fails_has_its_sentence(node, run, broken, says):
    node.fail(broken)
    done = run()
    assert done.returncode == 1
    assert says in done.stderr
