#!/bin/sh
# Style, types and tests; arguments go to pytest (a file, -k name). Every part runs, the exit status tells of the first failure.
set -u
status=0
sh scripts/lint.sh || status=$?
echo "== pytest"
.venv/bin/python -m pytest -n "${TEST_WORKERS:-3}" --dist loadgroup -m "not long" "$@" || { code=$?; [ "$status" -ne 0 ] || status=$code; }
exit "$status"
