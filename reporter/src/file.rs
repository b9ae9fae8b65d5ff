//! Reading and writing `memory-report.json` and `memory-report.json.gz`.
