#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every fuzz target for ten minutes, side by side. Arguments go to libFuzzer after that: -max_total_time=20 shortens it.
# What one run found new is where the next one begins (build/fuzz/corpus); an input that crashes is kept beside it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/${VENV:-.venv}/bin:$PATH"
case ${VENV:-.venv} in /*) PATH="$VENV/bin:$PATH" ;; esac

directory=build/fuzz
if [ ! -f "$directory/build.ninja" ]; then
	mkdir -p build
	meson setup "$directory" -Dfuzz=enabled >"$directory.log" 2>&1 || {
		tail -n 25 "$directory.log" >&2
		exit 1
	}
fi
targets=$(meson test -C "$directory" --no-rebuild --list 2>/dev/null | sed -n 's/.*fuzz-\([a-z_]*\)$/fuzz_\1/p')
[ -n "$targets" ] || {
	echo "fuzz: no targets in $directory" >&2
	exit 1
}
# shellcheck disable=SC2086 # one word a target
ninja -C "$directory" --quiet $(printf 'workload/tests/%s ' $targets)

declare -A running
for target in $targets; do
	corpus=$directory/corpus/$target
	mkdir -p "$corpus"
	nice -n 19 "$directory/workload/tests/$target" -max_total_time=600 -print_final_stats=1 -verbosity=0 \
		-artifact_prefix="$directory/$target-" "$@" "$corpus" >"$directory/$target.log" 2>&1 &
	running[$target]=$!
done
trap 'kill "${running[@]}" 2>/dev/null || true' EXIT
failed=
for target in $targets; do
	code=0
	wait "${running[$target]}" || code=$?
	inputs=$(sed -n 's/.*number_of_executed_units: *//p' "$directory/$target.log")
	echo "$target: ${inputs:-?} inputs, exit status $code"
	if [ "$code" -ne 0 ]; then
		failed=yes
		tail -n 40 "$directory/$target.log"
	fi
done
[ -z "$failed" ]
