"""The charts of the GPU stack."""

from __future__ import annotations

from typing import Final

GPU_OPERATOR_REPOSITORY: Final = "https://helm.ngc.nvidia.com/nvidia"
GPU_OPERATOR_VERSION: Final = "v26.7.0"
DEVICE_PLUGIN_REPOSITORY: Final = "https://nvidia.github.io/k8s-device-plugin"
DEVICE_PLUGIN_VERSION: Final = "0.20.0"
