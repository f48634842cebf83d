#!/bin/sh
# Finds a Python 3.10 to 3.13 and lets it run set_up.py; PYTHON=... chooses another one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

fits() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    candidates=$PYTHON
else
    candidates="python3 python3.12 python3.11 python3.13 python3.10"
fi
for candidate in $candidates; do
    if fits "$candidate"; then
        exec "$candidate" "$here/set_up.py" "$@"
    fi
done

found=$(for candidate in $candidates; do "$candidate" --version 2>/dev/null || true; done | sort -u | tr '\n' ' ')
echo "No Python 3.10 to 3.13 among: $candidates (found: ${found:-none})." >&2
echo "Install one (sudo apt install python3 python3-dev python3-venv) or name one: make PYTHON=/path/to/python3.12 setup" >&2
exit 1
