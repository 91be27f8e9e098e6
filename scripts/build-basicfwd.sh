#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds DPDK's skeleton example, basicfwd, from the source that the DPDK documentation package installs.
#
#   scripts/build-basicfwd.sh OUT_DIR      leaves OUT_DIR/icbench-basicfwd; does nothing if that is newer than its source
#
# EXAMPLES names the directory of the examples where it is not /usr/share/dpdk/examples; CC the compiler.
set -eu

fail() {
	echo "build-basicfwd: $*" >&2
	exit 1
}

[ $# -eq 1 ] || fail "one argument is needed: the directory for the program"
out=$1
examples=${EXAMPLES:-/usr/share/dpdk/examples}
source=$examples/skeleton/basicfwd.c
compiler=${CC:-cc}

pkg-config --exists libdpdk 2>/dev/null || fail "libdpdk is missing: install libdpdk-dev and pkg-config"
command -v "$compiler" >/dev/null || fail "no compiler $compiler: install gcc, or name one with CC"
[ -f "$source" ] || [ -f "$source.gz" ] || fail "$source is missing: install dpdk-doc, or name its directory with EXAMPLES"
[ -f "$source" ] || source=$source.gz

mkdir -p "$out"
# Built against another DPDK than the installed one, it would not start.
version=$(pkg-config --modversion libdpdk)
if [ -x "$out/icbench-basicfwd" ] && [ "$out/icbench-basicfwd" -nt "$source" ] && [ "$(cat "$out/icbench-basicfwd.version" 2>/dev/null)" = "$version" ]; then
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $source in
*.gz) gzip -dc "$source" >"$work/basicfwd.c" ;;
*) cp "$source" "$work/basicfwd.c" ;;
esac
# shellcheck disable=SC2046  # flags are words
"$compiler" -O3 $(pkg-config --cflags libdpdk) -o "$work/basicfwd" "$work/basicfwd.c" $(pkg-config --libs libdpdk) ||
	fail "$source does not compile against libdpdk $version"
mv "$work/basicfwd" "$out/icbench-basicfwd"
echo "$version" >"$out/icbench-basicfwd.version"
