"""Whether the API server of a vCluster has had an answer from its identity provider."""

import base64
import json
from typing import Final

from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.errors import KubeError

_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_NOT_YET: Final = "oidc: authenticator not initialized"


def is_unanswered(api: Api, issuer: str) -> bool:
    """Whether it waits for the provider of that issuer still; False where it does not tell.

    It says so of any token of the issuer, also of one that nobody signed.
    """
    header, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "RS256"}, {"iss": issuer})
    )
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": f"{header}.{body}.bm9uZQ"},
    }
    try:
        status = api.post(_REVIEWS, review).get("status")
    except KubeError:
        return False
    return isinstance(status, dict) and _NOT_YET in str(status.get("error", ""))
