#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves `sriov` without the hardware: boots a Debian guest under emulation, with a card whose virtual functions are
# emulated too (QEMU's igb), and runs the plugin in it: see scripts/sriov/guest.sh and tests/sriov/.
#
#   scripts/test-sriov.sh [TEST…]          tests named are run alone, without a verdict on the lane
#   LANE=paths scripts/test-sriov.sh       the kernel's paths in the same guest, whose kernel has more of them, without a card
#
# Needs root, mmdebstrap, kmod, and apt's own sources for Debian's packages: QEMU and the kernel come from the same mirror. They
# are unpacked, not installed, into ${XDG_CACHE_HOME:-~/.cache}/icbench/sriov; delete it to have it made anew. The guest's other
# programs are this host's /usr, read-only. Nothing on the host changes.
# Environment: VENV (.venv), ARGS (options for pytest in the guest), ACCEL (tcg; kvm where the machine runs Debian's kernel),
# TIMEOUT in seconds (1200), ICBENCH_TEST_VPP (a VPP's prefix such as /opt/vpp, which links with this host's libraries: the lane
# paths then has its taps too; no registry has VPP).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
ROOT=$PWD
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/icbench
TREE=$CACHE/sriov
NAME=${LANE:-sriov}
LOG=$CACHE/$NAME.log
STAMP=$CACHE/$NAME.stamp
# The first Debian whose QEMU emulates virtual functions so that they carry frames.
SUITE=trixie
PACKAGES=qemu-system-x86,linux-image-amd64,busybox-static
VENV=${VENV:-.venv}
case $VENV in /*) ;; *) VENV=$ROOT/$VENV ;; esac
ACCEL=${ACCEL:-tcg}
TIMEOUT=${TIMEOUT:-1200}
VPP=${ICBENCH_TEST_VPP:-}
TESTS=$*

# shellcheck source=scripts/setup/debian.sh
. scripts/setup/debian.sh

say() {
	echo "test-$NAME: $*"
}

die() {
	say "$*" >&2
	exit 1
}

make_tree() {
	[ "$(cat "$TREE/.complete" 2>/dev/null)" = "$SUITE $PACKAGES" ] && return
	say "unpacking QEMU and a kernel of Debian $SUITE (once, about 350 MB in $TREE) ..."
	rm -rf "$TREE"
	mkdir -p "$TREE"
	mmdebstrap --variant=extract --include="$PACKAGES" --skip=output/dev \
		--aptopt="$(debian_freshness)" --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
		"$SUITE" "$TREE" "$1" >>"$LOG" 2>&1 || return
	depmod -b "$TREE/usr" "$(kernel)" >>"$LOG" 2>&1 || return
	# The guest's /usr is this host's, with the kernel's modules laid over it.
	mkdir -p "$TREE/over/lib" && cp -al "$TREE/usr/lib/modules" "$TREE/over/lib/" || return
	echo "$SUITE $PACKAGES" >"$TREE/.complete"
}

kernel() {
	# shellcheck disable=SC2012  # one name, made by Debian
	ls "$TREE/usr/lib/modules" | tail -n 1
}

# What of /etc programs in /usr need, and directories beside it that the guest sees: "TAG PATH" a line.
make_lane() {
	local python name
	rm -rf "$LANE"
	mkdir -p "$LANE/etc" "$LANE/reports"
	for name in ld.so.cache passwd group nsswitch.conf alternatives lxc python3 python3.*; do
		for name in /etc/$name; do [ ! -e "$name" ] || cp -a "$name" "$LANE/etc/"; done
	done
	echo icbench-guest >"$LANE/etc/hostname"
	echo "127.0.0.1 localhost icbench-guest" >"$LANE/etc/hosts"
	echo "tree $ROOT" >"$LANE/shares"
	case $VENV in "$ROOT"/*) ;; *) echo "venv $VENV" >>"$LANE/shares" ;; esac
	python=$("$VENV/bin/python" -c 'import sys; print(sys.base_prefix)') || die "no Python in $VENV: run make first"
	case $python in /usr) ;; *) echo "python $python" >>"$LANE/shares" ;; esac
	[ -z "$VPP" ] || echo "vpp $VPP" >>"$LANE/shares"
	echo "$ROOT/scripts/sriov/guest.sh" >"$LANE/guest"
	printf '%s=%q\n' ROOT "$ROOT" VENV "$VENV" ARGS "${ARGS:-}" TESTS "$TESTS" NAME "$NAME" VPP "$VPP" >"$LANE/environment"
}

share() {
	printf '%s\n' -fsdev "local,id=$1,path=$2,security_model=none,multidevs=remap${3:+,$3}" \
		-device "virtio-9p-pci,fsdev=$1,mount_tag=$1"
}

# QEMU by the unpacked tree's own loader and libraries: the host's may be older.
boot() {
	local shares library tag path
	library=$(dirname "$(find "$TREE/usr/lib" -name libc.so.6 | head -n 1)")
	mapfile -t shares < <(
		share usr /usr readonly=on
		share modules "$TREE/over" readonly=on
		share lane "$LANE"
		while read -r tag path; do share "$tag" "$path" readonly=on; done <"$LANE/shares"
	)
	# TCG's time stamp counter is the host's, so it is as invariant as that; QEMU does not say so by itself.
	# On a busy host its timer is late, which the kernel must not take for a broken one.
	QEMU_MODULE_DIR=$library/qemu timeout -k 10 "$TIMEOUT" \
		"$TREE"/usr/lib64/ld-linux-x86-64.so.2 --library-path "$library" "$TREE/usr/bin/qemu-system-x86_64" \
		-L "$TREE/usr/share/qemu" -L "$TREE/usr/share/seabios" -L "$TREE/usr/lib/ipxe/qemu" \
		-nodefaults -nographic -no-reboot -serial stdio -monitor none \
		-machine q35 -accel "$ACCEL${TCG_OPTIONS[*]:+,${TCG_OPTIONS[*]}}" -cpu max,x-force-features=on,+invtsc -smp 4 -m 3072 \
		-device intel-iommu,intremap=on,caching-mode=on \
		-device pcie-root-port,id=rootport,slot=1 "${CARD[@]}" \
		-kernel "$TREE/boot/vmlinuz-$(kernel)" -initrd "$TREE/initramfs" \
		-append "console=ttyS0 intel_iommu=on panic=-1 mitigations=off no_timer_check tsc=reliable nowatchdog rcupdate.rcu_cpu_stall_suppress=1 quiet" \
		"${shares[@]}" </dev/null 2>&1
}

# Of the console, what tells how far it is; everything is in the log.
progress() {
	stdbuf -oL tr -d '\r' | tee -a "$LOG" |
		stdbuf -oL sed -nE 's/^(.*icbench-guest: )/\1/; s/^icbench-guest: /test-'"$NAME"': /p; s/^(tests\/.*(PASSED|FAILED|ERROR|SKIPPED).*)/  \1/p'
}

[ "$(id -u)" = 0 ] || die "root is needed to unpack Debian's packages as they are: run it with sudo"
for program in mmdebstrap depmod; do
	command -v "$program" >/dev/null || die "$program is missing: apt install mmdebstrap kmod"
done
SOURCE=$(debian_mirror)
[ -n "$SOURCE" ] || die "apt has no source of Debian's main component: this test needs a Debian host"
mkdir -p "$CACHE"
exec 9>"$CACHE/sriov.lock"
flock -n 9 || die "another run is at work in $TREE"
began=$SECONDS
: >"$LOG"
case $NAME in
sriov) CARD=(-device igb,bus=rootport,mac=52:54:00:12:34:56) HAS="with a card of 7 virtual functions" ;;
paths) CARD=() HAS="without a card" ;;
*) die "there is no lane $NAME: LANE is sriov or paths" ;;
esac
LANE=$(mktemp -d)
trap 'rm -rf "$LANE"' EXIT
[ "$ACCEL" != tcg ] || TCG_OPTIONS=(thread=multi)
make_tree "$SOURCE" || die "QEMU and a kernel cannot be unpacked: $(grep '^E: ' "$LOG" | tail -n 1) (log: $LOG)"
python3 scripts/sriov/initramfs.py "$TREE" "$(kernel)" scripts/sriov/init "$TREE/initramfs" || die "no initramfs"
make_lane
say "booting Linux $(kernel) under emulation, $HAS; console: $LOG"
boot | progress
verdict=$(sed -nE 's/^icbench-guest: (PASS|FAIL), .*/\1/p' <(tr -d '\r' <"$LOG") | tail -n 1)
took=$((SECONDS - began))
version=$(git rev-parse --short HEAD 2>/dev/null)$(git diff --quiet HEAD 2>/dev/null || echo "+changes")
[ -n "$TESTS" ] || printf '%s|%s|%s|%s\n' "${verdict:-FAIL}" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$took" "$version" >"$STAMP"
[ -n "$verdict" ] || say "the guest ended without a verdict; the end of its console:" "$(tail -n 20 "$LOG")"
say "${verdict:-FAIL} after $took s (log: $LOG)"
[ "$verdict" = PASS ]
