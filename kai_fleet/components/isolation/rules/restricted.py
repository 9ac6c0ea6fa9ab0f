"""Pod Security's level `restricted`, as expressions (CEL) for the guard of a team's namespace.

The namespace's own label stays `baseline`: vCluster's pod and KAI's reservation pods violate
`restricted` in every version, and a label has no exceptions. Here they are named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kai_fleet.components.guard.queue_guard_rules import names, text
from kai_fleet.components.isolation.rules.pod_security_fields import VOLUMES

# KAI's own programs. The images' user is 65532, and none but the CRD upgrader's starts a shell.
KAI_PROGRAMS: Final = (
    *("admission", "binder", "crd-upgrader", "nodescaleadjuster", "operator"),
    *("podgroupcontroller", "podgrouper", "queuecontroller", "resource-reservation"),
    *("resourcereservation", "scalingpod", "scheduler", "webhookmanager"),
)
# Where KAI's parts have files mounted: certificates, the scheduler's configuration, the token.
KAI_MOUNTS: Final = (
    "/tmp/k8s-webhook-server/serving-certs",
    "/etc/config/config.yaml",
    "/var/run/secrets/kubernetes.io/serviceaccount",
)
_SECCOMP: Final = "['RuntimeDefault', 'Localhost']"
_POD: Final = "variables.o.spec.?securityContext"


def restricted(kai_images: Sequence[str]) -> list[tuple[str, str]]:
    """Expression and sentence of each field that `restricted` asks for.

    Pods of the vCluster's StatefulSet pass, and pods that run KAI's programs and nothing else: by
    the images' own entry points and user, without hooks, and with files only where KAI has some.
    """
    platform = f"{_POD}.?runAsUser.orValue(1) != 0 && " + _all(_runs_kai(kai_images))
    found = [
        (
            _all("c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false"),
            "securityContext.allowPrivilegeEscalation: false in each container",
        ),
        (
            _all(
                "'ALL' in c.?securityContext.?capabilities.?drop.orValue([])"
                " && c.?securityContext.?capabilities.?add.orValue([])"
                ".all(a, a == 'NET_BIND_SERVICE')"
            ),
            "securityContext.capabilities.drop: [ALL] in each container, and add at most"
            " NET_BIND_SERVICE",
        ),
        (
            _all(
                "c.?securityContext.?runAsNonRoot.orValue("
                f"{_POD}.?runAsNonRoot.orValue(false)) == true"
            ),
            "securityContext.runAsNonRoot: true",
        ),
        (
            f"{_POD}.?runAsUser.orValue(1) != 0 && "
            + _all("c.?securityContext.?runAsUser.orValue(1) != 0"),
            "securityContext.runAsUser with a number above 0",
        ),
        (
            _all(
                f"c.?securityContext.?seccompProfile.?type.orValue("
                f"{_POD}.?seccompProfile.?type.orValue('')) in {_SECCOMP}"
            ),
            "securityContext.seccompProfile.type: RuntimeDefault",
        ),
        (
            f"variables.o.spec.?volumes.orValue([]).all(v, v.all(k, k in {names(VOLUMES)}))",
            "only volumes of the kinds configMap, csi, downwardAPI, emptyDir, ephemeral, image,"
            " persistentVolumeClaim, projected and secret",
        ),
    ]
    return [
        (
            f"variables.control || ({platform}) || ({expression})",
            f"' is not as isolation level restricted wants it; write {remedy}'",
        )
        for expression, remedy in found
    ]


def kai_image(kai_images: Sequence[str]) -> str:
    """A pattern of the names of the images with KAI's programs."""
    places = "|".join(re.escape(each) for each in kai_images)
    return f"^({places})({'|'.join(KAI_PROGRAMS)})(:[^/]*)?(@[^/]*)?$"


def _runs_kai(kai_images: Sequence[str]) -> str:
    """Whether a container runs one of KAI's programs, and nothing that somebody brought along."""
    probes = ("livenessProbe", "readinessProbe", "startupProbe")
    return " && ".join(
        [
            f"c.image.matches({text(kai_image(kai_images))})",
            "!has(c.command) && !has(c.lifecycle)",
            "(!has(c.args) || !c.image.contains('/crd-upgrader'))",
            *(f"!c.?{probe}.?exec.hasValue()" for probe in probes),
            f"c.?volumeMounts.orValue([]).all(m, m.mountPath in {names(KAI_MOUNTS)})",
            "c.?securityContext.?runAsUser.orValue(1) != 0",
            "size(c.?securityContext.?capabilities.?add.orValue([])) == 0",
        ]
    )


def _all(expression: str) -> str:
    return f"variables.containers.all(c, {expression})"
