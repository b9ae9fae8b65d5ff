#!/usr/bin/env python3
"""Compares answers of memory-fleet with queries of DuckDB over the same files.

    tests/duckdb_agrees.py PROGRAM FOLDER

It needs `pip install duckdb`. The folder must not be compacted while this runs. DuckDB reads the reports, so it also
checks the buckets of compact files.
"""

import json
import math
import subprocess
import sys

import duckdb

PROGRAM, FOLDER = sys.argv[1:]
REPORTS = f"read_parquet('{FOLDER}/reports/**/*.parquet')"


def answer(question, *columns):
    """The rows of an answer of memory-fleet."""
    command = [PROGRAM, question, FOLDER, "--limit", "0", "--format", "json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["rows"]
    return sorted(tuple(row.get(column) for column in columns) for row in rows)


def agree(question, found, sql):
    expected = sorted(duckdb.sql(sql).fetchall())
    assert len(found) == len(expected) > 0, (question, len(found), len(expected))
    for row, other in zip(found, expected):
        for value, known in zip(row, other):
            is_number = isinstance(known, float)
            same = math.isclose(value, known, rel_tol=1e-9, abs_tol=1e-6) if is_number else value == known
            assert same, (question, row, other)
    print(f"{question}: {len(found)} rows agree")


agree(
    "growth",
    answer("growth", "service", "path", "before", "after"),
    f"""WITH ends AS (SELECT service, min(date) AS first, max(date) AS last FROM {REPORTS} GROUP BY service
    ), runs AS (
        SELECT service, count(DISTINCT run_id) FILTER (WHERE date = first) AS firsts,
            count(DISTINCT run_id) FILTER (WHERE date = last) AS lasts
        FROM {REPORTS} JOIN ends USING (service) GROUP BY service
    )
    SELECT service, path, coalesce(sum(amount) FILTER (WHERE date = first), 0)::DOUBLE / any_value(firsts),
        coalesce(sum(amount) FILTER (WHERE date = last), 0)::DOUBLE / any_value(lasts)
    FROM {REPORTS} JOIN ends USING (service) JOIN runs USING (service)
    WHERE date IN (first, last) AND units = 'bytes' AND path LIKE 'explicit/%' GROUP BY service, path""",
)
agree(
    "dark",
    answer("dark", "service", "version", "processes", "heap_unclassified", "heap_allocated"),
    f"""SELECT service, coalesce(version, ''), count(DISTINCT (host, process, pid, started)),
        avg(amount) FILTER (WHERE path = 'explicit/heap-unclassified')::DOUBLE,
        avg(amount) FILTER (WHERE path = 'heap-allocated')::DOUBLE
    FROM {REPORTS} WHERE path IN ('explicit/heap-unclassified', 'heap-allocated') GROUP BY ALL""",
)
agree(
    "outliers",
    [row for row in answer("outliers", "service", "host")],
    f"""WITH last AS (
        SELECT service, max(time_bucket(INTERVAL '6 hours', ts, TIMESTAMPTZ '1970-01-01 00:00:00+00')) AS bucket
        FROM {REPORTS} GROUP BY service
    ), paths AS (
        SELECT service, host, process, pid, started, path, avg(amount) AS amount FROM {REPORTS} JOIN last USING (service)
        WHERE ts >= bucket AND units = 'bytes' AND path LIKE 'explicit/%' GROUP BY ALL
    ), processes AS (SELECT service, host, process, pid, started, sum(amount) AS amount FROM paths GROUP BY ALL
    ), middles AS (SELECT service, median(amount) AS middle FROM processes GROUP BY ALL
    ), spread AS (
        SELECT service, middle, greatest(median(abs(amount - middle)) * 1.4826, 0.02 * middle) AS unit
        FROM processes JOIN middles USING (service) GROUP BY service, middle
    )
    SELECT service, host FROM processes JOIN spread USING (service) WHERE (amount - middle) / unit >= 5""",
)
