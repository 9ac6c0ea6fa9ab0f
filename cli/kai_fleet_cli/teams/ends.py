"""What of a team ends when: its certificates, and the fixes for the versions that it runs."""

from contextlib import suppress

from cryptography import x509

from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, stored_pieces
from kai_fleet.releases import KAI, VCLUSTER


def ends_of(kubeconfig: str, kai: str, vcluster: str) -> list[str]:
    """What is known to end of a team, the nearest first: `2026-12-16 fixes for vCluster v0.35.3`.

    Days are in UTC; past ones are there, too.

    Args:
        kubeconfig: The administrator's in the state; one that vCluster did not write is left out.
        kai: The version of the KAI that schedules for the team; "" for none.
        vcluster: The version of its vCluster.
    """
    ends: list[str] = []
    with suppress(TenantKubeconfigError):
        pieces = stored_pieces(kubeconfig)
        authority = x509.load_pem_x509_certificate(pieces.authority.encode())
        ends.append(f"{pieces.expires:%Y-%m-%d} its kubeconfig")
        ends.append(f"{authority.not_valid_after_utc:%Y-%m-%d} its server's authority")
    for name, release in (("KAI", KAI.get(kai)), ("vCluster", VCLUSTER.get(vcluster))):
        if release and release.support_end:
            ends.append(f"{release.support_end} fixes for {name} {release.version}")
    return sorted(ends)
