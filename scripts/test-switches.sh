#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the demo, the conformance suite, functions, faults and host tests over switches that no distribution has: VPP and Snabb.
#
#   ICBENCH_TEST_VPP="/opt/vpp-26.02 /opt/vpp-26.06" ICBENCH_TEST_SNABB=/opt/snabb scripts/test-switches.sh [PART…]
#
# Both are trees (installed, built, or unpacked by icbench get) or programs; without them the newest that this host has is taken.
# Everything runs over each VPP; of two, the last is also measured beside the first. PARTs (demo, conformance, functions, faults,
# host, versions) named are run alone, without a verdict on the lane. Needs root. Half an hour a VPP on two CPUs.
# Environment: VENV (.venv), ARGS (options for pytest).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/icbench
VENV=${VENV:-.venv}
PARTS=${*:-demo conformance functions faults host versions}
case $VENV in /*) ;; *) VENV=$PWD/$VENV ;; esac
PYTEST=("$VENV/bin/pytest" -p no:cacheprovider)
read -ra OPTIONS <<<"${ARGS:-}"

say() {
	echo "test-switches: $*"
}

# The program of switch $1 in the tree, or program, $2; the newest of this host without.
program() {
	"$VENV/bin/python" - "$@" <<'END'
import sys
from pathlib import Path
from pytest_icbench.model.switch_tree import installed_programs, program_in
switch, *given = sys.argv[1:]
found = [program_in(switch, path) if path.is_dir() else path for path in map(Path, given)] if given else installed_programs(switch)[:1]
print(*(path.resolve() for path in found if path is not None and path.is_file()))
END
}

# Runs part $1: pytest with the rest, over the switches whose programs are first on PATH.
part() {
	local name=$1
	shift
	case " $PARTS " in *" $name "*) ;; *) return ;; esac
	say "$name over $NAMED"
	"${PYTEST[@]}" "$@" "${OPTIONS[@]}" || failed="$failed $name"
}

[ "$(id -u)" = 0 ] || { say "root is needed for the containers: run it with sudo" >&2; exit 1; }
read -ra GIVEN <<<"${ICBENCH_TEST_VPP:-}"
read -ra VPPS <<<"$(program vpp "${GIVEN[@]}")"
SNABB=$(program snabb ${ICBENCH_TEST_SNABB:+"$ICBENCH_TEST_SNABB"})
[ "${#VPPS[@]}" -ge "${#GIVEN[@]}" ] && [ -n "${VPPS[*]}$SNABB" ] ||
	{ say "no VPP or no Snabb there: name their trees by ICBENCH_TEST_VPP and ICBENCH_TEST_SNABB" >&2; exit 1; }
TOOLS=$(mktemp -d)
trap 'rm -rf "$TOOLS"' EXIT
PATH=$TOOLS:$PATH
failed="" versions="" began=$SECONDS
[ -z "$SNABB" ] || { ln -s "$SNABB" "$TOOLS/snabb"; versions="Snabb $("$SNABB" --version 2>&1 | sed -n '1s/.* //p')"; }
for vpp in "${VPPS[@]:-}"; do
	[ -z "$vpp" ] || { ln -sf "$vpp" "$TOOLS/vpp"; versions="VPP $(grep -aoE -m1 'libvlib\.so\.[0-9.]+' "$vpp" | head -n 1 | cut -d. -f3-), $versions"; }
	NAMED="${vpp:-no VPP} and ${SNABB:-no Snabb}"
	names=$(cd "$TOOLS" && ls | paste -sd,)
	either=$(cd "$TOOLS" && ls | sed 's/$/ or /' | tr -d '\n') either=${either% or }
	part demo scenarios/test_demo.py --icbench-switch "$names" --icbench-strict
	part conformance --pyargs pytest_icbench.conformance --icbench-switch "$names" --icbench-port all
	part functions tests/host/test_functions_vpp.py tests/host/test_function_acl_drops.py -k "$either or VPP or vpp"
	part faults tests/host/test_switch_faults.py -k "$either"
	part host tests/host -k "$either" --ignore tests/host/test_functions_vpp.py --ignore tests/host/test_switch_faults.py --ignore tests/host/test_conformance.py
	[ -z "$SNABB" ] || rm -f "$TOOLS/snabb" # once is enough
	SNABB=
done
[ "${#VPPS[@]}" -lt 2 ] || part versions scenarios/test_gate.py --icbench-switch vpp -k rate --icbench-budget 4m --icbench-binary "vpp=${VPPS[0]}" --icbench-candidate "vpp:last=${VPPS[-1]}" --icbench-plain-exit-codes --icbench-fail-on INVALID
took=$((SECONDS - began)) verdict=PASS
[ -z "$failed" ] || verdict=FAIL
commit=$(git rev-parse --short HEAD 2>/dev/null)$(git diff --quiet HEAD 2>/dev/null || echo "+changes")
mkdir -p "$CACHE"
[ $# -gt 0 ] || printf '%s|%s|%s|%s\n' "$verdict" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$took" "$commit with ${versions%, }" >"$CACHE/switches.stamp"
say "$verdict after $took s${failed:+:$failed}"
[ "$verdict" = PASS ]
