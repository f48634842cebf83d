#!/bin/sh
# Style and types of everything in the checkout.
set -eu
bin=.venv/bin
echo "== ruff check";  "$bin/ruff" check .
echo "== ruff format"; "$bin/ruff" format --check .
echo "== mypy";        "$bin/mypy"
