"""URNs are read from the left: what a name has in it is no type."""

import pytest

from kai_fleet.urns import Urn, provider_urn, read_urn

STACK = "urn:pulumi:prod::kai-fleet::"


@pytest.mark.parametrize(
    ("urn", "types", "name"),
    [
        (f"{STACK}a:b:C::n", ("a:b:C",), "n"),
        (f"{STACK}a:b:C$d:e:F::n", ("a:b:C", "d:e:F"), "n"),
        (f"{STACK}a:b:C::x::d:e:F$g:h:I::y", ("a:b:C",), "x::d:e:F$g:h:I::y"),
        (f"{STACK}a:b:C:::n", ("a:b:C",), ":n"),
        ("", ("",), ""),
        ("kai-fleet:teams.ml", ("",), ""),
    ],
)
def test_a_urn_has_types_and_a_name(urn, types, name):
    assert read_urn(urn) == Urn(types, name)
    assert read_urn(urn).type == types[-1]
    assert read_urn(urn).above == types[:-1]


def test_a_reference_to_a_provider_ends_with_an_id():
    assert provider_urn(f"{STACK}pulumi:providers:kubernetes::x::y::id") == (
        f"{STACK}pulumi:providers:kubernetes::x::y"
    )
    assert provider_urn("") == ""
