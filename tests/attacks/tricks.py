"""Requests by which an account would get more rights, or rid of a bound: verb, path, body."""

from tests.attacks.host import RBAC


def _binding(role, kind="ClusterRole"):
    return {
        "metadata": {"name": "vc-vision-v-team-vision"},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [
            {"kind": "ServiceAccount", "name": "vision", "namespace": "kai-fleet-team-stacks"}
        ],
    }


_RBAC = f"/apis/{RBAC}/v1"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_OWN = "/api/v1/namespaces/team-vision"
_ALL_VERBS = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
_PRIVILEGED = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
_SELECTOR = {"metadata": {"annotations": {"scheduler.alpha.kubernetes.io/node-selector": ""}}}
# What is tried: verb, path, body.
TRICKS = {
    "cluster-admin by a binding of the chart's name": (
        "POST",
        f"{_RBAC}/clusterrolebindings",
        _binding("cluster-admin"),
    ),
    "a cluster role of the chart's name": (
        "POST",
        f"{_RBAC}/clusterroles",
        {"metadata": {"name": "vc-vision-v-team-vision"}, "rules": _ALL_VERBS},
    ),
    "the vCluster's own role": (
        "PATCH",
        f"{_RBAC}/clusterroles/kai-fleet-vcluster-vision",
        {"rules": _ALL_VERBS},
    ),
    "admin of its namespace": (
        "POST",
        f"{_RBAC}/namespaces/team-vision/rolebindings",
        _binding("cluster-admin"),
    ),
    "edit of its namespace": (
        "POST",
        f"{_RBAC}/namespaces/team-vision/rolebindings",
        _binding("edit"),
    ),
    "a role with more than it has": (
        "POST",
        f"{_RBAC}/namespaces/team-vision/roles",
        {"metadata": {"name": "more"}, "rules": _ALL_VERBS},
    ),
    "a role that may write its quotas": (
        "POST",
        f"{_RBAC}/namespaces/team-vision/roles",
        {
            "metadata": {"name": "more"},
            "rules": [{"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["patch"]}],
        },
    ),
    "a role that may bind": (
        "POST",
        f"{_RBAC}/namespaces/team-vision/roles",
        {
            "metadata": {"name": "more"},
            "rules": [{"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["bind"]}],
        },
    ),
    "rights in another's namespace": (
        "POST",
        f"{_RBAC}/namespaces/team-ml/rolebindings",
        _binding("kai-fleet-team-stack"),
    ),
    "its own rights, widened": (
        "PATCH",
        f"{_RBAC}/clusterroles/kai-fleet-team-stack",
        {"rules": _ALL_VERBS},
    ),
    "the level of its Pod Security": ("PATCH", _OWN, _PRIVILEGED),
    "a node selector of its namespace": ("PATCH", _OWN, _SELECTOR),
    "the end of its namespace": ("DELETE", _OWN, None),
    "a second namespace": ("POST", "/api/v1/namespaces", {"metadata": {"name": "team-x"}}),
    "more GPUs": (
        "PATCH",
        f"{_OWN}/resourcequotas/gpus",
        {"spec": {"hard": {"requests.nvidia.com/gpu": "99"}}},
    ),
    "no quota": ("DELETE", f"{_OWN}/resourcequotas/gpus", None),
    "system priority": ("DELETE", f"{_OWN}/resourcequotas/system-priority", None),
    "no network policy": (
        "DELETE",
        "/apis/networking.k8s.io/v1/namespaces/team-vision/networkpolicies/kai-fleet-pods",
        None,
    ),
    "a network policy that opens all": (
        "POST",
        "/apis/networking.k8s.io/v1/namespaces/team-vision/networkpolicies",
        {"metadata": {"name": "open"}, "spec": {"podSelector": {}, "egress": [{}]}},
    ),
    "no guard": (
        "DELETE",
        f"{_ADMISSION}/validatingadmissionpolicies/kai-fleet-host-vision",
        None,
    ),
    "a guard bound to nobody": (
        "PATCH",
        f"{_ADMISSION}/validatingadmissionpolicybindings/kai-fleet-host-vision",
        {"spec": {"validationActions": ["Audit"]}},
    ),
    "a webhook of its own": (
        "POST",
        f"{_ADMISSION}/mutatingwebhookconfigurations",
        {"metadata": {"name": "mine"}, "webhooks": []},
    ),
    "a node's labels": (
        "PATCH",
        "/api/v1/nodes/vision-1",
        {"metadata": {"labels": {"kai-fleet/pool": "ml"}}},
    ),
    "a node for a pod that waits": (
        "POST",
        f"{_OWN}/pods/p/binding",
        {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "ml-1"}},
    ),
    "a node's proxy": ("GET", "/api/v1/nodes/ml-1/proxy/pods", None),
    "a priority class": (
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "mine"}, "value": 1_000_000},
    ),
    "a runtime class": (
        "POST",
        "/apis/node.k8s.io/v1/runtimeclasses",
        {"metadata": {"name": "mine"}, "handler": "nvidia"},
    ),
    "a volume of the node": (
        "POST",
        "/api/v1/persistentvolumes",
        {"metadata": {"name": "mine"}, "spec": {"hostPath": {"path": "/"}}},
    ),
    "a token of the platform's": (
        "POST",
        "/api/v1/namespaces/kai-fleet-team-stacks/serviceaccounts/audio/token",
        {"spec": {"audiences": []}},
    ),
    "a token of a controller": (
        "POST",
        "/api/v1/namespaces/kube-system/serviceaccounts/statefulset-controller/token",
        {"spec": {"audiences": []}},
    ),
    "a certificate of an administrator": (
        "POST",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {"metadata": {"name": "me"}, "spec": {"signerName": "kubernetes.io/kube-apiserver-client"}},
    ),
    "a pod in another's namespace": (
        "POST",
        "/api/v1/namespaces/team-ml/pods",
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
    ),
    "a node for a pod, by the old way": (
        "POST",
        f"{_OWN}/bindings",
        {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "ml-1"}},
    ),
    "an address for a Service": (
        "PATCH",
        f"{_OWN}/services/web/status",
        {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}},
    ),
    "another range of amounts": (
        "POST",
        f"{_OWN}/limitranges",
        {"metadata": {"name": "mine"}, "spec": {"limits": []}},
    ),
    "a quota of its own, with a scope": (
        "POST",
        f"{_OWN}/resourcequotas",
        {"metadata": {"name": "mine"}, "spec": {"scopes": ["BestEffort"]}},
    ),
    "what a quota counts": (
        "PATCH",
        f"{_OWN}/resourcequotas/gpus/status",
        {"status": {"used": {"requests.nvidia.com/gpu": "0"}}},
    ),
    "a token of its vCluster": (
        "POST",
        f"{_OWN}/serviceaccounts/vc-vision/token",
        {"spec": {"audiences": []}},
    ),
    "finalizers of its namespace": ("PUT", f"{_OWN}/finalize", {"metadata": {"name": "x"}}),
    "the state of its namespace": ("PATCH", f"{_OWN}/status", {"status": {"phase": "Active"}}),
    "the state of a node": (
        "PATCH",
        "/api/v1/nodes/ml-1/status",
        {"status": {"capacity": {"nvidia.com/gpu": "99"}}},
    ),
    "a role that collects others": (
        "POST",
        f"{_RBAC}/clusterroles",
        {
            "metadata": {
                "name": "mine",
                "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"},
            },
            "rules": _ALL_VERBS,
        },
    ),
    "approval of a certificate": (
        "PUT",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests/me/approval",
        {"metadata": {"name": "me"}},
    ),
    "the end of all its pods' guards": (
        "DELETE",
        f"{_ADMISSION}/validatingadmissionpolicies",
        None,
    ),
    "a rule that admits all": (
        "POST",
        f"{_ADMISSION}/validatingadmissionpolicybindings",
        {"metadata": {"name": "mine"}, "spec": {"policyName": "x"}},
    ),
    "the volume of another": (
        "PATCH",
        "/api/v1/persistentvolumes/others",
        {"spec": {"claimRef": {"namespace": "team-vision", "name": "mine"}}},
    ),
    "a class of storage": (
        "POST",
        "/apis/storage.k8s.io/v1/storageclasses",
        {"metadata": {"name": "mine"}, "provisioner": "x"},
    ),
    "a claim of devices": (
        "POST",
        "/apis/resource.k8s.io/v1/namespaces/team-vision/resourceclaims",
        {"metadata": {"name": "mine"}, "spec": {"devices": {}}},
    ),
    "a class of devices": (
        "POST",
        "/apis/resource.k8s.io/v1/deviceclasses",
        {"metadata": {"name": "mine"}, "spec": {}},
    ),
    "a kind of its own": (
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {"metadata": {"name": "mine.example.com"}},
    ),
    "an API of its own": (
        "POST",
        "/apis/apiregistration.k8s.io/v1/apiservices",
        {"metadata": {"name": "v1.example.com"}},
    ),
    "a group of KAI's": (
        "POST",
        "/apis/scheduling.run.ai/v2alpha2/namespaces/team-vision/podgroups",
        {"metadata": {"name": "mine"}, "spec": {"queue": "nlp"}},
    ),
}
