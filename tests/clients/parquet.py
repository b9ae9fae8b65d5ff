"""DuckDB, pyarrow and polars read the tables of about-memory, and must compute the sums of the source."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import polars
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet

PROGRAM = os.environ["ABOUT_MEMORY_PROGRAM"]
HOSTILE = [
    "<script>alert(1)</script>",
    "a;b,c (d) e",
    '"quoted\\"',
    "two\nlines\r\tand\x01more",
    "\u202eright to left\u2066",
    "<alloc::vec::Vec<T> as core::iter::Extend>::extend",
    "]]>}{'",
    "%2F=%",
]


def export(*arguments):
    output = subprocess.run([PROGRAM, "export", "--format", "parquet", *map(str, arguments)], capture_output=True)
    if output.returncode:
        sys.exit(f"about-memory export {arguments}: {output.stderr.decode()}")
    return [Path(line) for line in output.stdout.decode().splitlines()]


def report(path, reports):
    content = {"version": 1, "hasMozMallocUsableSize": True, "reports": reports}
    with gzip.open(path, "wt", compresslevel=1) as file:
        json.dump(content, file)


def row(path, amount, process="app (pid 7)", kind=1, units=0):
    return {
        "process": process,
        "path": path,
        "kind": kind,
        "units": units,
        "amount": amount,
        "description": "What it is.",
    }


def sums_of_file(path):
    """The sum and the number of rows according to each client."""
    [duck] = duckdb.sql(f"SELECT sum(amount::HUGEINT), count(*) FROM '{path}'").fetchall()
    arrow = pyarrow.parquet.read_table(path)
    amounts = arrow["amount"].to_pylist()
    frame = polars.read_parquet(path)
    polars_amounts = frame["amount"].to_list()
    assert amounts == polars_amounts, path
    assert (duck[0] or 0) == sum(amounts) and duck[1] == len(amounts), (path, duck)
    assert arrow["path"].to_pylist() == frame["path"].to_list()
    return sum(amounts), len(amounts), arrow


def reports_agree(folder):
    cases = {
        "empty": [],
        "one": [row("explicit/a", 42)],
        "hostile": [row("explicit/" + name.replace("/", "\\"), 1 << index, name) for index, name in enumerate(HOSTILE)],
        "extreme": [row("x", amount, kind=2) for amount in [2**63 - 1, -(2**63), 2**53 + 1, -1, 0]],
        "million": [row(f"explicit/part-{index % 1000}/item-{index:07}", index) for index in range(1_000_000)],
    }
    for name, reports in cases.items():
        source, table = folder / f"{name}.json.gz", folder / f"{name}.parquet"
        report(source, reports)
        export(source, "-o", table, "--label", "region=eu", "--service", name)
        total, count, arrow = sums_of_file(table)
        assert total == sum(entry["amount"] for entry in reports), name
        assert count == len(reports), name
        assert sorted(arrow["path"].to_pylist()) == sorted(entry["path"] for entry in reports), name
        if reports:
            [labels] = duckdb.sql(f"SELECT DISTINCT labels['region'] FROM '{table}'").fetchall()
            assert labels == ("eu",) or labels == (["eu"],), labels
            metadata = pyarrow.parquet.read_schema(table).metadata
            assert metadata[b"memory_report.table"] == b"reports", metadata
            assert pyarrow.parquet.ParquetFile(table).metadata.row_group(0).sorting_columns


def queries():
    """The queries of the guide, each under its title."""
    guide = Path(__file__).parents[2] / "docs/src/tables.md"
    found = {}
    title = None
    parts = guide.read_text().split("```")
    for index, part in enumerate(parts):
        if index % 2 == 0:
            titles = [line for line in part.splitlines() if line.startswith("## ")]
            title = titles[-1][3:] if titles else title
        elif part.startswith("sql\n"):
            found.setdefault(title, []).append(part[4:])
    return found


def fleet_answers(folder):
    fleet = folder / "fleet"
    for day, version, growth in [(20, "1.0", 0), (21, "1.1", 700), (22, "1.1", 900)]:
        for host in range(5):
            source = folder / "host.json.gz"
            report(
                source,
                [
                    row("heap-allocated", 10_000 + growth + host, kind=2),
                    row("explicit/cache", 1000 + growth),
                    row("explicit/fixed", 10),
                ],
            )
            options = ["--append-to", fleet, "--service", "se/arch", "--service-version", version]
            options += ["--host", f"worker-{host}", "--time", f"2026-11-{day}T10:00:00Z"]
            written = export(source, *options)
            assert written == export(source, *options), "the same run must write the same file"
    assert len(list(fleet.rglob("*.parquet"))) == 15

    total = 3 * 5 * (10_000 + 10_000) + 2 * 5 * (700 + 900) + 3 * 10 * 2
    pattern = f"{fleet}/reports/**/*.parquet"
    [[duck]] = duckdb.sql(f"SELECT sum(amount) FROM read_parquet('{pattern}', hive_partitioning = true)").fetchall()
    assert duck == total, (duck, total)
    services = duckdb.sql(
        f"SELECT DISTINCT service, date FROM read_parquet('{pattern}', hive_partitioning = true) ORDER BY ALL"
    ).fetchall()
    assert [service for service, _ in services] == ["se/arch"] * 3, services
    frame = polars.scan_parquet(f"{fleet}/reports", hive_partitioning=True).collect()
    assert frame["amount"].sum() == total and set(frame["service"]) == {"se/arch"}
    table = pyarrow.dataset.dataset(fleet / "reports", partitioning="hive").to_table()
    assert pyarrow.compute.sum(table["amount"]).as_py() == total
    assert set(table["service"].to_pylist()) == {"se/arch"}

    os.chdir(folder)
    answers = {}
    for title, texts in queries().items():
        if title == "Stacks of a reporter":
            continue  # until there are stacks
        for text in texts:
            answers[title] = duckdb.sql(text).fetchall() if "COPY" not in text else duckdb.execute(text).fetchall()
    growth = answers["Growth per path between two dates"]
    assert growth[0][:2] == ("se/arch", "explicit/cache") and growth[0][-1] == 900, growth
    percentiles = answers["Heap-unclassified by version"]
    assert [line[1] for line in percentiles] == ["1.0", "1.1"], percentiles
    worst = answers["The worst processes"]
    assert worst[0][0] == "worker-4", worst


def stacks_agree(folder):
    dump = Path(__file__).parents[2] / "dmd/analyze/tests"
    sources = sorted(path for path in dump.rglob("*.json*") if "expected" not in path.name)
    tried = 0
    for source in sources:
        blocks, frames = folder / "stacks.parquet", folder / "frames.parquet"
        folded = subprocess.run([PROGRAM, "export", "--format", "folded", source, "--no-fix-stacks"], capture_output=True)
        if folded.returncode:
            continue
        tables = [export(source, "-o", path, "--table", path.stem, "--no-fix-stacks") for path in (blocks, frames)]
        total = sum(int(line.rsplit(b" ", 1)[1]) for line in folded.stdout.splitlines())
        columns = "sum(coalesce(usable, alloc_bytes))::HUGEINT"
        [[duck]] = duckdb.sql(f"SELECT {columns} FROM '{blocks}'").fetchall()
        frame = polars.read_parquet(blocks)
        assert (duck or 0) == total, (source, duck, total)
        assert (frame["usable"].sum() or 0) + (frame["alloc_bytes"].sum() or 0) == total, source
        ids = set(pyarrow.parquet.read_table(frames)["stack_id"].to_pylist())
        assert set(frame["stack_id"]) <= ids, source
        tried += 1
    assert tried, "no dump was tested"

    source = dump / "data/real/tantivy.json.gz"
    written = export(source, "--append-to", folder / "fleet", "--service", "se/arch", "--no-fix-stacks")
    [stacks] = [path for path in written if "stacks" in path.parts]
    [query] = queries()["Stacks of a reporter"]
    answer = duckdb.sql(query).fetchall()
    assert answer and answer[0][-1], answer
    usable = polars.read_parquet(stacks, hive_partitioning=False)["usable"].sum()
    everything = duckdb.sql(query.replace("LIMIT 20", "")).fetchall()
    assert sum(line[2] for line in everything) == usable, usable


with tempfile.TemporaryDirectory() as name:
    reports_agree(Path(name))
    fleet_answers(Path(name))
    stacks_agree(Path(name))
print("DuckDB, pyarrow and polars agree with about-memory")
