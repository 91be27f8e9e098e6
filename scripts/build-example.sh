#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds an example of DPDK, basicfwd, l3fwd or ip_pipeline, from the source that the DPDK documentation package installs.
#
#   scripts/build-example.sh NAME OUT_DIR      leaves OUT_DIR/icbench-NAME; does nothing if that is newer than its source
#
# EXAMPLES names the directory of the examples where it is not /usr/share/dpdk/examples; CC the compiler.
set -eu

fail() {
	echo "build-example: $*" >&2
	exit 1
}

[ $# -eq 2 ] || fail "two arguments are needed: basicfwd, l3fwd or ip_pipeline, and the directory for the program"
name=$1
out=$2
examples=${EXAMPLES:-/usr/share/dpdk/examples}
compiler=${CC:-cc}
# What is no file of its own is included by another one. A virtio port checks no IPv4 checksums, which l3fwd asks for.
case $name in
basicfwd) sources=skeleton/basicfwd.c change= ;;
l3fwd)
	sources="l3fwd/main.c l3fwd/l3fwd_acl.c l3fwd/l3fwd_em.c l3fwd/l3fwd_event.c l3fwd/l3fwd_event_generic.c"
	sources="$sources l3fwd/l3fwd_event_internal_port.c l3fwd/l3fwd_fib.c l3fwd/l3fwd_lpm.c"
	change='s/\.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM,/.offloads = 0,/'
	;;
ip_pipeline)
	sources="ip_pipeline/main.c"
	for file in action cli conn cryptodev kni link mempool parser pipeline swq tap thread tmgr; do
		# DPDK 23.11 has no kni.c any more.
		[ ! -f "$examples/ip_pipeline/$file.c" ] || sources="$sources ip_pipeline/$file.c"
	done
	# Its buffers hold frames of 1518 bytes. The thread of its command line sleeps, and may share a CPU with the other.
	change='s/\.mtu = 9000 - /.mtu = 1518 - /; s/^\t\tconn_poll_for_msg(conn);/&\n\t\tusleep(1000);/'
	;;
*) fail "there is no example '$name': basicfwd, l3fwd or ip_pipeline" ;;
esac
source=$examples/${sources%% *}

pkg-config --exists libdpdk 2>/dev/null || fail "libdpdk is missing: install libdpdk-dev and pkg-config"
command -v "$compiler" >/dev/null || fail "no compiler $compiler: install gcc, or name one with CC"
[ -f "$source" ] || [ -f "$source.gz" ] || fail "$source is missing: install dpdk-doc, or name its directory with EXAMPLES"
[ -f "$source" ] || source=$source.gz

mkdir -p "$out"
# Built against another DPDK than the installed one, it would not start.
version=$(pkg-config --modversion libdpdk)
if [ -x "$out/icbench-$name" ] && [ "$out/icbench-$name" -nt "$source" ] && [ "$(cat "$out/icbench-$name.version" 2>/dev/null)" = "$version" ]; then
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "${source%/*}"/* "$work" 2>/dev/null || true # without the directories beside them
gzip -df "$work"/*.gz 2>/dev/null || true
[ -z "$change" ] || sed -i "$change" "$work"/*.c
files=
for file in $sources; do files="$files $work/${file##*/}"; done
# shellcheck disable=SC2046,SC2086  # flags and files are words
"$compiler" -O3 -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk) -I"$examples/common" -o "$work/$name" $files $(pkg-config --libs libdpdk) ||
	fail "$source does not compile against libdpdk $version"
mv "$work/$name" "$out/icbench-$name"
echo "$version" >"$out/icbench-$name.version"
