#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the workload against the DPDK of several Debian suites, each with that suite's compiler and libraries in a tree of
# its own, warnings as errors, and sends frames between two workloads there. One line and one verdict a suite.
#
#   scripts/test-dpdk.sh [SUITE…]          default: bookworm trixie sid; names only are tested, others stay cached
#
# Needs root (chroot), mmdebstrap, and apt's own sources for Debian's packages: the trees come from the same mirror. They are
# kept in ${XDG_CACHE_HOME:-~/.cache}/icbench/dpdk-SUITE; delete one to have it made anew. Needs no huge pages.
# Environment: VENV (.venv, whose meson is used: that of Debian 12 is too old).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
ROOT=$PWD
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/icbench
PACKAGES=gcc,libc6-dev,libdpdk-dev,ninja-build,pkg-config,python3
VENV=${VENV:-.venv}

# shellcheck source=scripts/setup/debian.sh
. scripts/setup/debian.sh

die() {
	echo "test-dpdk: $*" >&2
	exit 1
}

make_tree() {
	local suite=$1 tree=$2 source=$3
	[ "$(cat "$tree/.complete" 2>/dev/null)" = "$PACKAGES" ] && return
	rm -rf "$tree"
	mkdir -p "$tree"
	mmdebstrap --variant=minbase --include="$PACKAGES" --skip=output/dev \
		--aptopt="$(debian_freshness)" --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
		"$suite" "$tree" "$source" || return
	echo "$PACKAGES" >"$tree/.complete"
}

# Runs a command in the tree, with mounts that end with it.
inside() {
	local tree=$1
	shift
	mkdir -p "$tree/src" "$tree/meson" "$tree/build"
	unshare --mount --propagation private sh -eu -c '
		tree=$1 root=$2 meson=$3
		shift 3
		mount --bind "$root" "$tree/src"
		mount -o remount,ro,bind "$tree/src"
		mount --bind "$meson" "$tree/meson"
		mount -t proc proc "$tree/proc"
		mount --rbind /sys "$tree/sys"
		mount --rbind /dev "$tree/dev"
		mount -t tmpfs tmpfs "$tree/run"
		exec chroot "$tree" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp LC_ALL=C.UTF-8 "$@"
	' sh "$tree" "$ROOT" "$MESON" "$@"
}

build() {
	inside "$1" sh -eu -c '
		export PYTHONPATH=/meson PYTHONDONTWRITEBYTECODE=1
		meson="python3 -m mesonbuild.mesonmain"
		[ -f /build/build.ninja ] || $meson setup /build /src --werror -Ddpdk=enabled
		$meson compile -C /build
	'
}

lane() {
	local suite=$1 tree=$CACHE/dpdk-$suite log=$CACHE/dpdk-$suite.log source=$2 version result
	: >"$log"
	make_tree "$suite" "$tree" "$source" >>"$log" 2>&1 ||
		{ echo "$suite: FAIL: its tree could not be made: $(grep '^E: ' "$log" | tail -n 1) (log: $log)"; return 1; }
	version=$(inside "$tree" pkg-config --modversion libdpdk 2>>"$log")
	build "$tree" >>"$log" 2>&1 ||
		{ echo "$suite: FAIL: the workload does not build against DPDK $version (log: $log)"; return 1; }
	result=$(inside "$tree" python3 /src/scripts/dpdk_smoke.py /build/workload/icbench-workload 2>>"$log") ||
		{ echo "$suite: FAIL: DPDK $version: ${result:-the smoke test crashed} (log: $log)"; return 1; }
	echo "$suite: PASS: DPDK $version, $(inside "$tree" gcc -dumpfullversion) -Werror; $result"
}

[ "$(id -u)" = 0 ] || die "root is needed for the chroots: run it with sudo"
command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: apt install mmdebstrap"
case $VENV in /*) ;; *) VENV=$ROOT/$VENV ;; esac
MESON=$("$VENV/bin/python" -c 'import mesonbuild, pathlib; print(pathlib.Path(mesonbuild.__file__).parent.parent)' 2>/dev/null) ||
	die "no meson in $VENV: run make first"
SOURCE=$(debian_mirror)
[ -n "$SOURCE" ] || die "apt has no source of Debian's main component: this test needs a Debian host"
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock -n 9 || die "another run is at work in $CACHE"
failed=0
[ $# -gt 0 ] || set -- bookworm trixie sid
for suite; do
	lane "$suite" "$SOURCE" || failed=1
done
exit $failed
