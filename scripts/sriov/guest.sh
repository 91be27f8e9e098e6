#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guest as its first program: makes a machine of it, measures from one virtual function to another, and
# compares the machine before and after; in the lane `paths`, over the kernel's paths. The last line on the console is the verdict. Environment: from /lane/environment.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root ICBENCH_GUEST=yes PYTHONDONTWRITEBYTECODE=1
# shellcheck disable=SC1091
. /lane/environment # ROOT VENV ARGS TESTS NAME VPP
[ -z "$VPP" ] || PATH=$VPP/bin:$PATH
STATE=/run/state.json
failed=

say() {
	echo "icbench-guest: $*"
}

end() {
	say "$1, $(cut -d. -f1 /proc/uptime) s in the guest"
	sync
	poweroff -f || echo o >/proc/sysrq-trigger
	sleep 60
}

must() {
	"$@" || {
		say "FAIL: $*"
		end FAIL
	}
}

# Notes that step $1 failed and goes on: what follows tells more.
check() {
	step=$1
	shift
	say "$step"
	"$@" || {
		say "FAIL: $step"
		failed=yes
	}
}

# Notes when the machine stands still because its host does: waits end, and frames are late, for no reason of their own.
watch_clock() {
	: >/run/stalls
	while sleep 1; do
		now=$(cut -d. -f1 /proc/uptime)
		[ $((now - ${last:-$now})) -lt 8 ] || echo $((now - last)) >>/run/stalls
		last=$now
	done
}

# Loads the driver of virtual functions as soon as there are some, as udev does, which this guest has not.
load_driver() {
	while sleep 0.1; do
		[ "$(cat "/sys/class/net/$PF/device/sriov_numvfs")" = 0 ] || [ -d /sys/module/igbvf ] || modprobe igbvf
	done
}

# What fails while the machine stood still is run once more.
run_pytest() {
	: >/run/stalls
	pytest_once "$@" && return
	[ -s /run/stalls ] || return 1
	say "the machine stood still for $(tr '\n' ' ' </run/stalls)s: what failed is run once more"
	pytest_once "$@" --last-failed
}

pytest_once() {
	# By a pipe: lines for a log, not for a terminal.
	{
		# shellcheck disable=SC2086  # words of the user
		"$VENV/bin/pytest" -o cache_dir=/run/pytest -v --tb=short --icbench-reports=/lane/reports "$@" $ARGS 2>&1
		echo $? >/run/code
	} | cat
	return "$(cat /run/code)"
}

state() {
	"$VENV/bin/python" -m tests.sriov.state "$1" "$STATE"
}

machine() {
	must mount -t cgroup2 cgroup2 /sys/fs/cgroup
	must mkdir -p /dev/shm /dev/pts /run/lock
	must mount -t tmpfs -o mode=1777 shm /dev/shm
	must mount -t devpts devpts /dev/pts
	hostname icbench-guest
	ip link set lo up
	if [ "$NAME" = paths ]; then
		# netkit is built in.
		for module in veth bridge macvlan ipvlan vxlan openvswitch tun vhost_net sch_ingress cls_u32 cls_bpf act_mirred; do modprobe "$module"; done
		return
	fi
	must modprobe igb
	# As a machine that has measured before: what the kernel loads by itself is there (ib_core for drivers of DPDK).
	for module in veth bridge tun vhost_net 8021q ib_core; do modprobe "$module"; done
	for PF in /sys/bus/pci/drivers/igb/*/net/*; do PF=${PF##*/}; done
	must test -e "/sys/class/net/$PF"
	export PF
}

cd "$ROOT" || end "FAIL: no $ROOT"
machine
watch_clock &
if [ "$NAME" = paths ]; then
	say "up after $(cut -d. -f1 /proc/uptime) s: Linux $(uname -r)"
	if [ -n "$TESTS" ]; then
		# shellcheck disable=SC2086  # words of the user
		check "$TESTS" run_pytest $TESTS
	else
		check "every mode of every path, offloads, a path that lies, what SIGKILL leaves" run_pytest tests/host/test_kernel_paths.py -m ""
		check "what the paths do with frames" run_pytest tests/sriov/test_conformance.py -m "not icbench_long" \
			--icbench-switch "ipvlan netkit ovs-kernel macvlan xdp tc-redirect route vxlan" --icbench-node netns --icbench-strict
		[ -z "$VPP" ] || check "what VPP's taps do with frames" run_pytest tests/sriov/test_conformance.py \
			--icbench-switch vpp --icbench-port tap --icbench-node netns --icbench-strict
	fi
	[ -z "$failed" ] || end FAIL
	end PASS
fi
load_driver &
say "up after $(cut -d. -f1 /proc/uptime) s: Linux $(uname -r), PF $PF, $(ls /sys/kernel/iommu_groups | wc -l) IOMMU groups"
if [ -n "$TESTS" ]; then
	# shellcheck disable=SC2086  # words of the user
	check "$TESTS" run_pytest $TESTS --icbench-pf "$PF"
	[ -z "$failed" ] || end FAIL
	end PASS
fi
check "state before" state save
check "frames from one virtual function to another" run_pytest tests/sriov/test_traffic.py --icbench-pf "$PF" --icbench-strict
check "state after: VFs, drivers, links, modules, cgroups, mounts, namespaces" state compare
# The same comparison has to notice what it is there for.
say "a VF count that is not restored"
echo 1 >"/sys/class/net/$PF/device/sriov_numvfs"
if state compare | sed 's/^icbench-guest: not as before/noticed/' | tee /run/noticed | grep "sriov_numvfs 0.*became.*sriov_numvfs 1"; then
	say "noticed"
else
	say "FAIL: the comparison does not see a VF count that is not restored"
	cat /run/noticed
	failed=yes
fi
echo 0 >"/sys/class/net/$PF/device/sriov_numvfs"
rmmod igbvf 2>/dev/null
check "a card in use, sessions that die, nodes on cgroup v2" \
	run_pytest tests/sriov/test_card.py tests/host/test_links.py tests/host/test_nodes.py tests/host/test_lxc.py tests/host/test_lxc_killed.py
check "what the card's switch does with frames" \
	run_pytest tests/sriov/test_conformance.py --icbench-switch sriov --icbench-port all --icbench-pf "$PF" --icbench-strict
check "state at the end" state compare
[ -z "$failed" ] || end FAIL
end PASS
