"""Does rules.sql say the same on Spark as on DuckDB, unmodified?

    python tests/audit/spark.py [--histories 2000] [--seed 1]

A line for each setting: how many verdicts, and how many differ; 1 where any does, 2 where Spark or Java is missing.
Spark is no dependency of the project: `pip install pyspark` in an environment of your own. It reads the relations
`events` and `settings` as DuckDB judged them, through Parquet files.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import agree
import duckdb

from fencinglab.audit import audit


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument("--histories", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        print("pyspark is not installed: pip install pyspark", file=sys.stderr)
        return 2
    if not shutil.which("java"):
        print("java is not on the PATH; Spark runs on it: apt-get install default-jre-headless", file=sys.stderr)
        return 2
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    rows = agree.together(agree.sample(given.histories, given.seed))
    differing = 0
    for skew, retention in agree.SETTINGS:
        with tempfile.TemporaryDirectory(prefix="fencinglab-spark-") as folder:
            ours, theirs = _both(spark, rows, skew, retention, Path(folder))
        apart = [
            (row, rule) for row, values in ours.items() for rule in agree.NAMES if values[rule] != theirs[row][rule]
        ]
        differing += len(apart)
        print(f"skew {skew}, retention {retention}: {len(ours):,} rows, {len(ours) * len(agree.NAMES):,} verdicts, "
              f"{len(apart):,} differ{''.join(f', {rule} of row {row}' for row, rule in apart[:3])}")  # fmt: skip
    return 1 if differing else 0


def _both(spark: Any, rows: list[agree.Row], skew: int, retention: int | None, folder: Path) -> tuple[Any, Any]:
    """{row id: {rule: value}} by DuckDB and by Spark; both must have every row."""
    with duckdb.connect() as con:
        con.execute("set timezone = 'UTC'")
        audit.judge(con, agree.relation(con, rows), skew=skew, retention=retention)
        for name in ("events", "settings"):  # Parquet has no integer of 128 bits
            kinds = con.execute(f"select column_name, column_type from (describe {name})").fetchall()
            wide = ", ".join(f'"{column}"::decimal(38,0) as "{column}"' for column, of in kinds if of == "HUGEINT")
            columns = f"* replace ({wide})" if wide else "*"
            con.execute(f"copy (select {columns} from {name}) to '{folder / name}.parquet' (format parquet)")
            spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
        names = ", ".join(("row_id", *agree.NAMES))
        ours = con.execute(f"select {names} from verdicts").fetchall()
    theirs = spark.sql(audit.RULES_SQL).select("row_id", *agree.NAMES).collect()
    found = [{row[0]: dict(zip(agree.NAMES, row[1:], strict=True)) for row in judged} for judged in (ours, theirs)]
    if not len(ours) == len(theirs) == len(rows) or found[0].keys() != found[1].keys():
        raise SystemExit(f"{len(rows)} rows, {len(ours)} judged by DuckDB, {len(theirs)} by Spark")
    return found[0], found[1]


if __name__ == "__main__":
    sys.exit(main())
