# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The virtual environment: dependencies when pyproject.toml changed, the wheel when a source file changed.
# What was installed last is remembered as a content key below $VENV, so a new environment starts from nothing.

_stamped() {
	[ "$(cat "$VENV/icbench/$1" 2>/dev/null)" = "$2" ]
}

_stamp() {
	mkdir -p "$VENV/icbench"
	printf '%s\n' "$2" >"$VENV/icbench/$1"
}

_dpdk_version() {
	pkg-config --modversion libdpdk 2>/dev/null || echo none
}

# Content key of everything that a wheel is made from.
_source_key() {
	{
		find pytest_icbench scenarios workload -type f ! -path '*/__pycache__/*' ! -path 'workload/tests/*' -print0 |
			LC_ALL=C sort -z | xargs -0 sha256sum
		sha256sum pyproject.toml meson.build meson.options README.md LICENSE 2>/dev/null
		echo "DPDK $(_dpdk_version)"
	} | sha256sum | cut -d ' ' -f 1
}

_requirements() {
	"$VENV/bin/python" scripts/setup/requirements.py pyproject.toml "$EXTRAS"
}

_check_python() {
	local found
	found=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.version_info >= (3, 11))' 2>/dev/null) ||
		die "$PYTHON does not run: install Python 3.11 or newer, or name it with 'make PYTHON=PATH'"
	[ "${found#* }" = True ] || die "$PYTHON is Python ${found% *}, 3.11 is the oldest supported: name another with 'make PYTHON=PATH'"
}

_must_be_writable() {
	[ -w "$VENV" ] || die "$VENV belongs to $(stat -c %U "$VENV"): run as that user, or use another with 'make VENV=DIR'"
}

ensure_venv() {
	local key
	if ! "$VENV/bin/python" -c 'import pip' 2>/dev/null; then
		_check_python
		step "creating $VENV" "$PYTHON" -m venv "$VENV"
	fi
	key=$({
		_requirements
		"$VENV/bin/python" -V
	} | sha256sum | cut -d ' ' -f 1)
	_stamped requirements "$key" && return
	_must_be_writable
	# shellcheck disable=SC2046
	step "installing Python packages into $VENV" \
		"$VENV/bin/python" -m pip install --disable-pip-version-check $(_requirements)
	_stamp requirements "$key"
}

# The build tools are those of $VENV, so that nothing is fetched and the build directory is kept: only what changed is
# compiled. Its name has DPDK's version because meson remembers the libraries that it found.
ensure_wheel() {
	local key
	key=$(_source_key)
	_stamped wheel "$key" && return
	_must_be_writable
	step "building and installing pytest-icbench (DPDK: $(_dpdk_version))" env PATH="$VENV_PATH/bin:$PATH" \
		"$VENV/bin/python" -m pip install --disable-pip-version-check --no-deps --no-build-isolation \
		--force-reinstall --config-settings="build-dir=build/wheel-dpdk-$(_dpdk_version)" .
	_stamp wheel "$key"
}

_build_example() {
	scripts/build-example.sh "$1" build/examples && install -m 755 -t "$VENV/bin" "build/examples/icbench-$1"
}

# The drivers of basicfwd, a switch, and of l3fwd and ip_pipeline, network functions, look for their programs beside the environment's python.
ensure_example() {
	local key name=$1 source=${EXAMPLES:-/usr/share/dpdk/examples}/$2
	[ "$(_dpdk_version)" != none ] || return 0
	[ -e "$source" ] || [ -e "$source.gz" ] || return 0
	key=$({
		sha256sum scripts/build-example.sh
		_dpdk_version
	} | sha256sum | cut -d ' ' -f 1)
	[ -x "$VENV/bin/icbench-$name" ] && _stamped "$name" "$key" && return
	_must_be_writable
	step "building the DPDK example $name" _build_example "$name"
	_stamp "$name" "$key"
}
