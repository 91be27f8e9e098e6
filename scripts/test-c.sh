#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and runs the C tests twice: as shipped with warnings as errors, and with address and undefined-behaviour sanitizers.
# Build directories below build/ are kept, so that a second call only builds what changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/${VENV:-.venv}/bin:$PATH"
case ${VENV:-.venv} in /*) PATH="$VENV/bin:$PATH" ;; esac

lane() {
	local directory=build/$1
	shift
	if [ -f "$directory/build.ninja" ]; then
		meson configure "$directory" "$@" >/dev/null
	else
		meson setup "$directory" "$@" >"$directory.log" 2>&1 || {
			tail -n 25 "$directory.log" >&2
			return 1
		}
	fi
	ninja -C "$directory" --quiet
	[ -n "$(meson test -C "$directory" --no-rebuild --list 2>/dev/null)" ] || {
		echo "test-c: $directory has no tests" >&2
		return 1
	}
	meson test -C "$directory" --print-errorlogs
}

mkdir -p build
lane c-release --werror -Dfuzz=disabled
lane c-sanitized --werror -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false
