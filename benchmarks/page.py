"""Time to write a page, to open it in a browser, and to sort a table of 2,000 rows there.

    python benchmarks/page.py DATABASE [--runs 5] [--browser chromium]

Writes the page of the database, and one of a synthetic capture of 2,000 kernel names. Opens them in a real browser
without a window (Playwright's Python with the browser installed here) and prints medians. Opening lasts from navigation
to the first frame after the load event; sorting from the click on a header to the new layout, over all headers.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import measure

from tracedb.storage import template_database

ROWS = 2_000
FRAME = "() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
SORT = """() => [...document.querySelectorAll("#table-top-kernels-1 th button")].map(button => {
    const start = performance.now();
    button.click();
    document.body.offsetHeight;
    return performance.now() - start;
})"""


def many_kernels(path: Path) -> Path:
    """Write a database of ``ROWS`` kernels, each of its own name."""
    template_database.place(path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "INSERT INTO main.capture BY NAME SELECT 1 AS capture_id, 'torch' AS source, 'complete' AS status"
        )
        connection.execute(
            f"""INSERT INTO main.kernel_event BY NAME SELECT
                    1 AS capture_id, i AS event_id, 'kernel' AS kind, 0 AS device_id, 7 AS stream_id,
                    'void kernel_' || i * 7919 % {ROWS} || '<float>(int)' AS name,
                    10000 * i AS start_ns, 1000 + i * 7907 % {ROWS} AS duration_ns
                FROM range({ROWS}) AS r(i)"""
        )
    return path


def written(out: Path, *arguments: str) -> measure.Measured:
    """Write a page. Exits if that fails."""
    done = measure.run([sys.executable, "-m", "tracedb", "page", *arguments, "-o", str(out)])
    if done.exit_code:
        sys.exit(done.stderr)
    return done


def opened_ms(browser: Any, page: Path) -> float:
    """Return the time until the page is drawn, in ms."""
    tab = browser.new_page()
    tab.goto(page.as_uri())
    took: float = tab.evaluate(FRAME)
    tab.close()
    return took


def sorted_ms(browser: Any, page: Path) -> list[float]:
    """Return the time to sort by each column, in ms."""
    tab = browser.new_page()
    tab.goto(page.as_uri())
    assert tab.locator("#table-top-kernels-1 tbody tr").count() == ROWS
    took: list[float] = tab.evaluate(SORT)
    tab.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--browser", default="chromium")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        whole, many = Path(folder, "whole.html"), Path(folder, "many.html")
        done = written(whole, "--db", str(given.database))
        written(many, "top-kernels", "--top", str(ROWS), "--db", str(many_kernels(Path(folder, "many.duckdb"))))
        program = shutil.which(given.browser)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        opening = [opened_ms(browser, whole) for _ in range(given.runs)]
        sorting = [time for _ in range(given.runs) for time in sorted_ms(browser, many)]
        print(f"{measure.machine()}; {browser.browser_type.name} {browser.version}")
        print(
            f"write: {done.wall_seconds:.1f} s, CPU {done.cpu_seconds:.1f} s, {done.peak_bytes / 1e6:.0f} MB of memory"
        )
        print(f"file: {whole.stat().st_size / 1e6:.1f} MB")
        print(f"open: median {statistics.median(opening):.0f} ms of {given.runs}, longest {max(opening):.0f} ms")
        print(f"sort {ROWS:,} rows: median {statistics.median(sorting):.0f} ms, longest {max(sorting):.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()
