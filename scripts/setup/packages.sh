# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Debian packages: what is needed, what is missing, and installing it without starting any service.

# function|packages
NEEDS=(
	"C compiler, build tools and git|gcc libc6-dev make pkg-config ninja-build git"
	"Python 3.11 or newer with venv and headers|python3 python3-venv python3-dev"
	"DPDK 22.11 or newer: libraries, headers, testpmd, sources of its examples|libdpdk-dev dpdk dpdk-dev dpdk-doc"
	"AF_XDP sockets: libraries and headers|libxdp-dev libbpf-dev"
	"Open vSwitch with DPDK|openvswitch-switch-dpdk"
	"LXC with headers|lxc lxc-dev"
	"tools that measurements and tests are compared with, and neighbours|sockperf iperf3 stress-ng tcpdump iproute2 ethtool"
	"static analysis of the C program|cppcheck"
	"second C compiler with libFuzzer, for the fuzz tests|clang @libfuzzer"
	"OpenSSH: the way to a second host, and in the tests such a host's server|openssh-client openssh-server"
	"loading of kernel modules, for SR-IOV|kmod"
	"trees of other Debian suites, for tests against their DPDK and in a QEMU guest|mmdebstrap"
)
POLICY=/usr/sbin/policy-rc.d
POLICY_MARK="# written by the set-up of pytest-icbench while it installs packages"

# Debian names libFuzzer's package after the version of clang; without it nothing is fuzzed.
_libfuzzer() {
	case $(_os VERSION_ID "") in
	12) echo libclang-rt-14-dev ;;
	13) echo libclang-rt-19-dev ;;
	esac
}

needed_packages() {
	local need
	for need in "${NEEDS[@]}"; do
		# shellcheck disable=SC2086
		printf '%s\n' ${need#*|}
	done | sed "s/^@libfuzzer$/$(_libfuzzer)/; /^$/d"
}

missing_packages() {
	local installed
	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
	needed_packages | grep -Fvx -f <(printf '%s\n' "$installed")
}

# Field $1 of os-release, else $2.
_os() (
	# shellcheck disable=SC1090
	. "$OS_RELEASE" 2>/dev/null
	echo "${!1:-$2}"
)

# True on Debian 12 and later, testing and unstable (which have no VERSION_ID) included.
is_supported_debian() {
	local version
	version=$(_os VERSION_ID 99)
	[ "$(_os ID unknown)" = debian ] && [ "${version%%.*}" -ge 12 ]
}

explain_other_distribution() {
	local need
	{
		echo "icbench: packages are installed on Debian 12 and later only; this is $(_os PRETTY_NAME "an unknown system")."
		echo "Install these yourself, then call 'make PACKAGES=no ...':"
		for need in "${NEEDS[@]}"; do
			echo "  - ${need%%|*} (on Debian: ${need#*|})" | sed "s/@libfuzzer/libclang-rt-dev/"
		done
	} >&2
	exit 1
}

_forbid_services() {
	[ -e "$POLICY" ] && ! grep -qsF "$POLICY_MARK" "$POLICY" && return
	printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" >"$POLICY"
	chmod 755 "$POLICY"
}

_allow_services() {
	if grep -qsF "$POLICY_MARK" "$POLICY"; then rm -f "$POLICY"; fi
}

_enabled_units() {
	find /etc/systemd/system -path '*.wants/*' -printf '%f\n' 2>/dev/null | sort -u
}

# Units that the installation enabled would start at the next boot (a bridge of lxc-net, an Open vSwitch): undo that.
_disable_new_units() {
	local unit
	command -v systemctl >/dev/null || return 0
	comm -13 <(printf '%s\n' "$1") <(_enabled_units) | while read -r unit; do
		case $unit in
		lxc*.service | openvswitch*.service | ovs*.service | dpdk*.service | iperf3*.service | ssh*.service | ssh*.socket) systemctl disable "$unit" ;;
		esac
	done
}

_apt_install() {
	local before status=0
	before=$(_enabled_units)
	_forbid_services
	trap _allow_services EXIT
	DEBIAN_FRONTEND=noninteractive apt-get -y -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=300 \
		install --no-install-recommends "$@" || status=$?
	_allow_services
	trap - EXIT
	_disable_new_units "$before" || true
	return "$status"
}

ensure_packages() {
	local missing
	is_supported_debian || explain_other_distribution
	_allow_services 2>/dev/null || true
	mapfile -t missing < <(missing_packages)
	[ "${#missing[@]}" -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] ||
		die "these packages are missing and only root can install them: ${missing[*]} (or call 'make PACKAGES=no' to go on without)"
	say "will install ${#missing[@]} Debian packages with what they depend on: ${missing[*]}"
	say "no service is started, now or at boot; an existing Open vSwitch or LXC configuration stays as it is"
	step "updating the package lists" apt-get -o DPkg::Lock::Timeout=300 update
	step "installing packages" _apt_install "${missing[@]}"
}
