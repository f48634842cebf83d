#!/bin/sh
# Style, types and tests; arguments go to pytest (a file, -k name). Every part runs, the exit status tells of the first failure.
set -u
unset PYTHONDONTWRITEBYTECODE # many processes start, and each would compile every module again
status=0
mkdir -p log
sh scripts/lint.sh >log/lint.txt 2>&1 &
lint=$!
echo "== pytest"
.venv/bin/python -m pytest -n "${TEST_WORKERS:-4}" -m "not long" "$@" || status=$?
wait "$lint" || { code=$?; [ "$status" -ne 0 ] || status=$code; }
cat log/lint.txt
exit "$status"
