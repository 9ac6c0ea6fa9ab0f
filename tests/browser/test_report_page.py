"""The report in a real browser: nothing cut off, everything legible, and the same on paper."""

import itertools
import os
import re

import pytest

from kai_fleet_cli.report import page as writing
from kai_fleet_cli.report.page import page
from tests.browser import chromium
from tests.unit.report_samples import busy, empty, many

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture(scope="module", autouse=True)
def browser():
    if chromium.program() is None:
        said = "there is no Chromium here, and none could be installed within a minute"
        if os.environ.get(chromium.REQUIRED) == "required":
            pytest.fail(said)
        pytest.skip(said)


PAGES = {"busy": busy, "many": many, "empty": empty}


@pytest.fixture(scope="module")
def look(tmp_path_factory):
    folder, known = tmp_path_factory.mktemp("pages"), {}

    def measured(name, width=1200, scheme="light"):
        key = name, width, scheme
        if key not in known:
            known[key] = chromium.measured(page(PAGES[name]()), folder, width, scheme)
        return known[key]

    return measured


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [360, pytest.param(768, marks=pytest.mark.slow), 1200])
def test_nothing_reaches_over_the_edge(look, name, width):
    seen = look(name, width)
    assert seen["width"] == width
    assert seen["outside"] == []
    assert seen["scrollWidth"] <= width


@pytest.mark.parametrize("name", ["busy", "empty"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_every_text_and_every_shape_can_be_told_from_its_ground(look, name, scheme, width):
    """WCAG AA: 4.5 for text, 3 for what is drawn."""
    seen = look(name, width, scheme)
    assert len(seen["texts"]) > 20
    assert [text for text in seen["texts"] if text[1] < 4.5] == []
    assert {kind: has for kind, has in seen["shapes"].items() if has < 3} == {}
    assert min(size for _, _, size in seen["texts"]) >= 12


def test_light_and_dark_are_what_the_reader_prefers(look):
    assert look("busy", 1200, "light")["background"] == "rgb(255, 255, 255)"
    red, green, blue = map(int, re.findall(r"\d+", look("busy", 1200, "dark")["background"]))
    assert red + green + blue < 120


def test_what_matters_comes_first(look):
    assert look("busy")["figures"] == ["44", "25", "15", "6"]
    assert [text for _, text in look("busy")["headings"]][:3] == [
        "GPUs of stack prod",
        "Who waits",
        "Teams",
    ]


@pytest.mark.parametrize("name", PAGES)
def test_it_reads_without_eyes_and_without_a_mouse(look, name):
    seen = look(name)
    levels = [level for level, _ in seen["headings"]]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below <= above + 1 for above, below in itertools.pairwise(levels))
    assert seen["lang"] == "en"
    assert seen["title"].startswith("GPUs of stack ")
    assert set(seen["focusable"]) == {0}
    assert seen["anchors"] and all(seen["anchors"])
    assert set(seen["headers"]) <= {"row", "col"}
    for widths in seen["tables"]:
        assert len(set(widths)) == 1, widths


def test_each_drawing_has_its_numbers_beside_it(look):
    bars = look("busy")["bars"]
    assert len(bars) == 1 + 5 + 7
    assert all(hidden == "true" and width > 100 for hidden, width in bars)


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded(look, name):
    assert look(name)["loaded"] == []


def pages_of(pdf):
    return len(re.findall(rb"/Type\s*/Page[^s]", pdf.read_bytes()))


def test_on_paper_folded_trees_are_open(tmp_path, monkeypatch):
    report = many(12)
    counts = []
    for folded in (True, False):
        monkeypatch.setattr(writing, "OPEN_TREES", 0 if folded else 99)
        source, target = tmp_path / f"{folded}.html", tmp_path / f"{folded}.pdf"
        source.write_text(page(report), encoding="utf-8")
        assert ('class="tree" open' in source.read_text()) != folded
        chromium.run("light", f"--print-to-pdf={target}", source.as_uri())
        counts.append(pages_of(target))
    assert counts[0] == counts[1] > 3
