# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Where this host's apt has Debian from, for tests that unpack packages of other suites.

# The address from which apt fetches Debian's main component, security archives apart.
debian_mirror() {
	# shellcheck disable=SC2016  # the format is apt's
	apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk -F'|' '$1 == "Debian" && $2 == "main" && $3 !~ /security/ { print $4; exit }'
}

# Whether apt insists on fresh Release files: as on this host, so that a mirror frozen in time serves as well.
debian_freshness() {
	apt-config dump --no-empty --format '%f "%v";%n' Acquire::Check-Valid-Until Acquire::Check-Date
}
