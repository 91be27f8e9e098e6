#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a command as on a host of its own: scripts/own_host.sh COMMAND [ARGUMENT]...; without root as it is.
# Sessions of icbench there and on the real host know nothing of each other, so tests on either can run at once.
# Its own are: network, processes, mounts, files of sessions, control groups (below own-host.PID) and TMPDIR.
# It has no huge pages, and what is written to their numbers stays there, and no settings of CPUs' frequencies.
# CPUs, kernel and disk are common.
# SIGTERM ends all that runs there; nothing of it stays.
set -euo pipefail

[ "$(id -u)" -eq 0 ] || exec "$@"

NAME=own-host.$$
DIRECTORY=$(mktemp -d /tmp/oXXX) # short: messages have room for so much of a path
chmod 755 "$DIRECTORY" # for programs of other users, as /tmp is
GROUPS_MADE=()
CHILD=

# The kernel removes groups once their processes are gone.
clean_up() {
	local group
	for group in "${GROUPS_MADE[@]}"; do
		for _ in $(seq 100); do
			find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
			[ -d "$group" ] || break
			sleep 0.05
		done
	done
	rm -rf "$DIRECTORY"
}

# unshare ignores SIGTERM; with it the kernel kills the first process there, and with that all others.
end_all() {
	[ -z "$CHILD" ] || kill -KILL "$CHILD" 2>/dev/null || true
}

trap clean_up EXIT
trap end_all TERM HUP
trap : INT # the command gets it from the terminal, too

# As below systemd: groups are made beside init.scope, so that v2 finds no process in the group above them.
while read -r _ mount kind _; do
	case $kind in cgroup | cgroup2) ;; *) continue ;; esac
	group=$mount/$NAME
	mkdir -p "$group/init.scope"
	GROUPS_MADE+=("$group")
	# Nothing can join a group of v1 that has no CPUs and no memory.
	[ "$kind" = cgroup ] && [ -e "$mount/cpuset.cpus" ] || continue
	for name in cpuset.cpus cpuset.mems; do
		for place in "$group" "$group/init.scope"; do cat "$mount/$name" >"$place/$name"; done
	done
done </proc/mounts

# The second sysfs shows the network's devices; groups are handed over to it.
read -r -d '' INIT <<'END' || true
set -e
bpf=$(grep ' /sys/fs/bpf bpf ' /proc/mounts || true)
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/sshd /run/lock /run/netns /run/cgroup /run/pool
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
mount --rbind /run/cgroup /sys/fs/cgroup
umount -R -l /run/cgroup
rmdir /run/cgroup
[ -z "$bpf" ] || mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
[ ! -d /dev/hugepages ] || mount -t tmpfs tmpfs /dev/hugepages
for pool in /sys/devices/system/node/node*/hugepages /sys/kernel/mm/hugepages; do
	[ -d "$pool" ] || continue
	(cd "$pool" && find . -type f -path '*_hugepages*') >/run/pool/names
	mount -t tmpfs -o mode=755 tmpfs "$pool"
	while read -r name; do
		mkdir -p "$pool/${name%/*}"
		echo 0 >"$pool/$name"
	done </run/pool/names
done
rm -r /run/pool
for settings in /sys/devices/system/cpu/cpufreq /sys/devices/system/cpu/intel_pstate; do
	[ ! -d "$settings" ] || mount -t tmpfs tmpfs "$settings"
done
ip link set lo up
"$@"
exit $?
END

(
	for group in "${GROUPS_MADE[@]}"; do echo "$BASHPID" >"$group/init.scope/cgroup.procs"; done
	export TMPDIR=$DIRECTORY ICBENCH_SEVERAL_HOSTS=1
	exec unshare --net --mount --pid --ipc --fork --kill-child --mount-proc --propagation private sh -c "$INIT" sh "$@"
) <&0 &
CHILD=$!
status=0
wait "$CHILD" 2>/dev/null || status=$?
# A signal interrupts the first wait.
while kill -0 "$CHILD" 2>/dev/null; do
	status=0
	wait "$CHILD" 2>/dev/null || status=$?
done
exit "$status"
