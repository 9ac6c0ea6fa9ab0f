"""Files that nobody should write, generated: a plan or a sentence, in time, never a traceback."""

import json
import math
import tempfile
import time
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import offline
from kai_fleet_cli.stack_file import reading
from kai_fleet_stack import validation

SECONDS = 2.0
SLOW = [HealthCheck.too_slow]
SAME_EACH_TIME = settings(derandomize=True, deadline=None, suppress_health_check=SLOW)
KEYS = st.sampled_from(
    ["teams", "gpu", "queues", "kai", "vcluster", "guard", "teamStacks", "workloads", "cluster"]
)
ODD = st.sampled_from(
    [
        *("010", "0o7", "0b1", "1_0", "1:30", "2026-01-01", "2026-01-01T00:00:00Z", ".nan", ".inf"),
        *('"\\ud83d"', '"\\0"', '"\\u202e"', "१२", "!!binary aGk=", "!!set {a}", "!x 1", "~"),
        *("=", "<<", "''", "[]", "{}", "true", "12h", "&a [*a]", "*nosuch", "-1", "1e400"),
        *("9" * 400, f"'{'x' * 9999}'", "[" * 1500, "{a: " * 700, f"{'9' * 30}h"),
        *("{? [1] : 2}", "{1: 2}", "{~: 1}", "{? {} : 1}"),
    ]
)
ANY = st.recursive(
    st.one_of(ODD, st.text(max_size=8).map(repr), st.integers().map(str)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(st.one_of(KEYS, ODD, st.text(max_size=4).map(repr)), inner, max_size=3).map(
            lambda found: "{" + ", ".join(f"{k}: {v}" for k, v in found.items()) + "}"
        ),
    ),
    max_leaves=8,
)
FILES = st.lists(
    st.tuples(
        st.sampled_from([*["kai-fleet:"] * 3, "kai-flet:", "", "x:", "a\nb:"]),
        KEYS,
        ANY,
    ),
    max_size=4,
)


@settings(SAME_EACH_TIME, max_examples=300)
@given(FILES)
def test_parse_any_file_ends_with_settings_or_with_sentences(keys):
    lines = [f"  {json.dumps(prefix + key)}: {value}" for prefix, key, value in keys]
    text = "\n".join(["config:", "  kai-fleet:cluster: {name: c, context: c}", *lines])
    begun = time.process_time()
    try:
        raw = reading.parse(text, "Pulumi.odd.yaml")
    except UserError as why:
        assert str(why).startswith("Pulumi.odd.yaml")
        assert str(why).isprintable()
    else:
        for problem in validation.validate(raw).problems:
            assert problem.message.strip()
            assert str(problem).isprintable() and len(str(problem)) < 2000
    assert time.process_time() - begun < SECONDS


GOOD = {name: reading.path_of(name).read_text() for name in ("sandbox", "sandbox-host", "prod")}
VALUES = st.sampled_from(
    [
        *(None, True, 0, -1, 2**64, -(10**30), 0.1, 1e308, math.inf, math.nan, "", " ", "NaN"),
        *("1" * 5000, "9" * 400 + "Gi", "½", "a\u202eb", "\0x", "../../etc/passwd", "$(reboot)"),
        *([], {}, [[]], [None], {"": ""}, {"secure": None}, {1: 2}, {True: 1}, [1] * 2000),
        *("v999.999.999", "0.9.3", "12:30:45", "<<", "x" * 20_000),
    ]
)


def places(value):
    """Every mapping and list of a document with each key or index that it has."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from places(inner)


@pytest.mark.long
@settings(SAME_EACH_TIME, max_examples=40)
@given(st.sampled_from(sorted(GOOD)), st.lists(st.tuples(st.integers(0), VALUES), min_size=1))
def test_plan_odd_values_are_planned_or_refused_in_words(name, changes):
    document = yaml.safe_load(GOOD[name])
    for number, value in changes:
        found = list(places(document["config"]))
        where, key = found[number % len(found)] if found else (document["config"], "kai-fleet:kai")
        where[key] = deepcopy(value)  # else one of them may end up in itself
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"Pulumi.{name}.yaml"
        file.write_bytes(yaml.safe_dump(document).encode("utf-8", "surrogatepass"))
        found = offline.plan(name, file)
    assert not found.exit_code or found.problems
    assert all(problem.message.strip() and problem.subject for problem in found.problems)
    assert "Traceback" not in found.json()
