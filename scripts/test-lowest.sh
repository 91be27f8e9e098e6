#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests the package with the lowest versions that pyproject.toml declares, of Python's packages and with $PYTHON, and then with
# the newest pytest: unit and plugin tests that are not slow, and a collection of all scenarios.
#
#   scripts/test-lowest.sh [options for pytest]
#
# The environments are made anew in ${XDG_CACHE_HOME:-~/.cache}/icbench/lowest, outside of the checkout; the wheel is built with
# the tools of $VENV (.venv). When the tests passed last stands in "passed" there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv}
PYTHON=${PYTHON:-/usr/bin/python3}
WHERE=${XDG_CACHE_HOME:-$HOME/.cache}/icbench/lowest
case $VENV in /*) ;; *) VENV=$PWD/$VENV ;; esac

rm -rf "$WHERE/env" "$WHERE/wheel"
mkdir -p "$WHERE"
"$PYTHON" -m venv "$WHERE/env"
PATH=$VENV/bin:$PATH "$VENV/bin/python" -m pip -q wheel --no-deps --no-build-isolation -w "$WHERE/wheel" .
# shellcheck disable=SC2046
"$WHERE/env/bin/pip" -q install $("$PYTHON" scripts/setup/requirements.py pyproject.toml test,vpp | sed 's/>=/==/')
"$WHERE/env/bin/pip" -q install --no-deps "$WHERE"/wheel/*.whl

run() {
	local end_to_end=()
	for file in tests/plugin/test_*end_to_end.py; do end_to_end+=("--ignore=$file"); done
	"$WHERE/env/bin/pytest" --version
	"$WHERE/env/bin/pytest" -q -p no:cacheprovider tests/unit tests/plugin "${end_to_end[@]}" -m "not slow" "$@"
	"$WHERE/env/bin/pytest" -q -p no:cacheprovider scenarios --collect-only | tail -n 1
}

run "$@"
"$WHERE/env/bin/pip" -q install --upgrade pytest
run "$@"
date -u +%Y-%m-%d | tee "$WHERE/passed"
