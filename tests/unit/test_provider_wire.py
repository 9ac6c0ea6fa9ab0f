from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provider import wire
from provider.wire import UNKNOWN, Secret

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False, width=32).filter(lambda x: x % 1 != 0)
    | st.text(max_size=8)
    | st.just(UNKNOWN)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        | inner.map(Secret)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4))
def test_what_is_sent_comes_back(properties: dict[str, object]) -> None:
    assert wire.decode(wire.encode(properties)) == properties


def test_whole_numbers_stay_whole() -> None:
    found = wire.decode(wire.encode({"port": 443, "share": 0.5, "on": True}))
    assert found == {"port": 443, "share": 0.5, "on": True}
    assert isinstance(found["port"], int)
    assert found["on"] is True


def test_an_engine_without_secrets_gets_plain_values() -> None:
    assert wire.decode(wire.encode({"a": Secret("x")}, keep_secrets=False)) == {"a": "x"}


def test_outputs_are_marked_where_the_inputs_are() -> None:
    inputs = {"spec": {"token": Secret("x"), "name": "n"}, "list": [Secret(1), 2]}
    outputs = {"spec": {"token": "x", "name": "n", "added": 1}, "list": [1, 2], "status": {}}
    assert wire.like(outputs, inputs) == {
        "spec": {"token": Secret("x"), "name": "n", "added": 1},
        "list": [Secret(1), 2],
        "status": {},
    }


def test_a_list_of_another_length_is_secret_as_a_whole() -> None:
    assert wire.like([1, 2, 3], [Secret(2)]) == Secret([1, 2, 3])
    assert wire.like([1, 2, 3], [2]) == [1, 2, 3]


def test_a_secret_never_prints_its_value() -> None:
    assert "hidden" not in repr({"a": Secret("hidden")})


def test_files_are_refused_in_words() -> None:
    asset = {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", "path": "f"}
    with pytest.raises(ValueError, match="pass their text instead"):
        wire.decode(wire.encode({"values": asset}))
