#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `make test`, after `make install`: what leaves the host alone runs side by side, since each of it keeps one core busy; then comes,
# by itself, what changes the host. Arguments go to pytest. That no test was selected is an error if no part has one.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
PYTEST=${VENV:-.venv}/bin/pytest
END_TO_END=(tests/plugin/test_*end_to_end.py)
NOTHING_SELECTED=5
failed= found=

# Notes how part $1 ended, with exit code $2.
ended() {
	case $2 in
	0) found=yes ;;
	"$NOTHING_SELECTED") ;;
	*) failed="$failed${failed:+, }$1" ;;
	esac
}

mkdir -p build
set -m # a process group for what runs aside, to be ended as a whole
aside=build/test-aside.log
(
	make --no-print-directory -o install lint test-c || exit 1
	exec "$PYTEST" tests/plugin "${END_TO_END[@]/#/--ignore=}" "$@"
) >"$aside" 2>&1 &
pid=$!
trap 'kill -- "-$pid" 2>/dev/null' EXIT

echo "test: lint, C tests and tests/plugin meanwhile: their output follows ($aside)"
"$PYTEST" tests/unit "$@"
ended tests/unit $?
wait "$pid"
code=$?
trap - EXIT
cat "$aside"
ended "lint, C tests or tests/plugin" $code
"$PYTEST" tests/host "${END_TO_END[@]}" "$@"
ended "tests on the host" $?

[ -z "$failed" ] || {
	echo "test: failed: $failed" >&2
	exit 1
}
[ -n "$found" ] || {
	echo "test: no test was selected" >&2
	exit "$NOTHING_SELECTED"
}
