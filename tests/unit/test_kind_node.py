"""What is done inside the kind node that has the GPUs."""

import pytest

from tests.unit.kind_standins import LDCONFIG, SMI, Machine

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
    import subprocess

    from tests.unit.kind_standins import SCRIPTS

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
