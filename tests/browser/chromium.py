"""Headless Chromium: found, or installed where that takes no longer than a minute."""

import functools
import html
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

REQUIRED = "KAI_FLEET_BROWSER"  # `required`: who has none fails, as in .ci/run
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)
_SCHEMES = {"dark": "0", "light": "1"}


@functools.cache
def program() -> str | None:
    """The browser's path; None where there is none and none can be had."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        install = "apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            subprocess.run(["sh", "-c", install], timeout=60, check=False, **quiet)
        except subprocess.TimeoutExpired:
            return None
        found = next(filter(None, map(shutil.which, _NAMES)), None)
    return found


def run(scheme: str, *arguments: str) -> str:
    """What a run of the browser prints, with a profile of its own and no network."""
    with tempfile.TemporaryDirectory(prefix="kai-fleet-browser-") as profile:
        done = subprocess.run(
            [
                program() or "chromium",
                *_FLAGS,
                f"--user-data-dir={profile}",
                f"--blink-settings=preferredColorScheme={_SCHEMES[scheme]}",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(page: str, folder: Path, width: int, scheme: str) -> dict[str, Any]:
    """What a page is in the browser at a width: `LOOK`'s answer about it in a frame."""
    frame = folder / f"frame-{width}-{scheme}.html"
    frame.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="margin:0"><iframe id="page"'
        f' style="border:0;width:{width}px;height:1200px" srcdoc="{html.escape(page)}"></iframe>'
        f'<pre id="out"></pre><script>{LOOK}</script></body>',
        encoding="utf-8",
    )
    size = f"--window-size={max(width, 500)},1200"
    dumped = run(scheme, size, "--dump-dom", frame.as_uri())
    text = dumped.partition('<pre id="out">')[2].partition("</pre>")[0]
    assert text, dumped[-500:]
    found: dict[str, Any] = json.loads(html.unescape(text))
    return found


LOOK = """
const colour = text => {
  const part = text.match(/[\\d.]+/g).map(Number);
  return {rgb: part.slice(0, 3), alpha: part.length > 3 ? part[3] : 1};
};
const light = ([r, g, b]) => {
  const line = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  return 0.2126 * line(r) + 0.7152 * line(g) + 0.0722 * line(b);
};
const ratio = (a, b) => {
  const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
addEventListener("load", () => {
  const view = document.getElementById("page").contentWindow, doc = view.document;
  const root = doc.documentElement, style = element => view.getComputedStyle(element);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const found = colour(style(at).backgroundColor);
      if (found.alpha === 1) return found.rgb;
    }
    return [255, 255, 255];
  };
  const shown = element => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && style(element).visibility === "visible";
  };
  const outside = [], texts = [], shapes = {};
  for (const element of doc.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (shown(element) && !element.closest(".wide") && box.right > root.clientWidth + 1)
      outside.push(element.tagName + "." + element.getAttribute("class") + " " + box.right);
  }
  const walk = doc.createTreeWalker(doc.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !shown(element)) continue;
    const has = ratio(colour(style(element).color).rgb, behind(element));
    texts.push([walk.currentNode.data.trim().slice(0, 40), Math.round(has * 100) / 100,
                parseFloat(style(element).fontSize)]);
  }
  for (const shape of doc.querySelectorAll("svg rect")) {
    const own = style(shape), paint = own.fill === "none" ? own.stroke : own.fill;
    const has = ratio(colour(paint).rgb, behind(shape.closest("svg").parentElement));
    shapes[shape.getAttribute("class")] = Math.round(has * 100) / 100;
  }
  const list = (what, how) => [...doc.querySelectorAll(what)].map(how);
  document.getElementById("out").textContent = JSON.stringify({
    width: root.clientWidth, scrollWidth: root.scrollWidth, height: root.scrollHeight,
    background: style(doc.body).backgroundColor, outside, texts, shapes,
    headings: list("h1,h2,h3,h4", h => [Number(h.tagName[1]), h.textContent.trim()]),
    figures: list(".figures .number", n => n.textContent.trim()),
    focusable: list("a[href],summary,button,input,[tabindex]", f => f.tabIndex),
    bars: list("figure > svg, td > svg", s => [
      s.getAttribute("aria-hidden"), Math.round(s.getBoundingClientRect().width)]),
    tables: list("table", t =>
      [...t.rows].map(r => [...r.cells].reduce((n, c) => n + c.colSpan, 0))),
    headers: list("th", t => t.scope), lang: root.lang, title: doc.title,
    anchors: list("nav a", a => !!doc.getElementById(a.hash.slice(1))),
    loaded: view.performance.getEntriesByType("resource").map(e => e.name),
  });
});
"""
