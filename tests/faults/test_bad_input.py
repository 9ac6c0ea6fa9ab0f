"""Generated stack files: each ends in its time with a plan or a report, never a traceback."""

import io
import time
import traceback

import pytest
from rich.console import Console

from kai_fleet_cli.display import as_text
from kai_fleet_cli.plan import offline
from tests.faults.bad_files import files

COUNT, BATCH, SEED = 60, 30, 9
SECONDS = 30.0  # of processor time for one file; the one with 3,000 queues takes longest


pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def generated():
    return list(files(COUNT, SEED))


@pytest.mark.parametrize("batch", range(COUNT // BATCH))
def test_every_file_ends_with_a_plan_or_a_report(generated, tmp_path, batch):
    wrong = []
    for what, content in generated[batch * BATCH : (batch + 1) * BATCH]:
        file = tmp_path / "Pulumi.bad.yaml"
        file.write_bytes(content)
        begun = time.process_time()
        try:
            found = offline.plan("bad", file)
            shown = Console(file=io.StringIO(), width=100)
            as_text.show_plan(found, shown)
            text = found.json() + shown.file.getvalue()
        except Exception:
            wrong.append(f"{what}: {traceback.format_exc(limit=-3)}")
            continue
        took = time.process_time() - begun
        if took > SECONDS:
            wrong.append(f"{what}: took {took:.1f} s")
        if "Traceback" in text or (found.exit_code and not found.problems):
            wrong.append(f"{what}: exit {found.exit_code}, {text[:500]}")
        wrong += [
            f"{what}: a problem without words: {problem}"
            for problem in found.problems
            if not (problem.message.strip() and problem.subject)
        ]
    assert not wrong, f"{len(wrong)} files:\n" + "\n".join(wrong)


def test_the_files_differ_and_most_are_refused(generated):
    """The generator itself: were it to make good files, the test above would say nothing."""
    assert len(generated) == COUNT
    assert len({content for _, content in generated}) > COUNT * 0.95
