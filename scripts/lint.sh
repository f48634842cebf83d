#!/bin/sh
# Style and types of everything in the checkout; all three report, the exit status is that of the last failure.
bin=.venv/bin
status=0
echo "== ruff check" && "$bin/ruff" check . || status=$?
echo "== ruff format" && "$bin/ruff" format --check . || status=$?
echo "== mypy" && "$bin/mypy" || status=$?
exit "$status"
