#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Brings a machine and a checkout to the point where pytest can run; called by the Makefile before everything else.
# Packages (root, Debian), .venv, the wheel, DPDK's examples: each only if missing or changed. A second call takes about a second.
#
# Environment: VENV (.venv), PYTHON (/usr/bin/python3), PACKAGES=no (leave the system's packages alone),
# EXTRAS (extras of pyproject.toml to install).
set -uo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT" || exit 1
VENV=${VENV:-.venv}
PYTHON=${PYTHON:-/usr/bin/python3}
PACKAGES=${PACKAGES:-yes}
EXTRAS=${EXTRAS:-lxc,vpp,html,remote,benchmark,conformance,test,dev}
OS_RELEASE=${OS_RELEASE:-/etc/os-release}
LOG=$ROOT/build/setup.log
case $VENV in /*) VENV_PATH=$VENV ;; *) VENV_PATH=$ROOT/$VENV ;; esac

. scripts/setup/ui.sh
. scripts/setup/packages.sh
. scripts/setup/python.sh

mkdir -p build 2>/dev/null && [ -w build ] || die "cannot write to $ROOT/build: run as the user who owns it"
exec 9>build/setup.lock || die "cannot write to $ROOT/build/setup.lock: run as the user who owns it"
flock -n 9 || { say "another set-up is at work here, waiting for it"; flock -w 900 9 || die "the other set-up did not end within 15 minutes"; }
: >"$LOG"

[ "$PACKAGES" = no ] || ensure_packages
ensure_venv
ensure_wheel
ensure_example basicfwd skeleton/basicfwd.c
ensure_example l3fwd l3fwd/main.c
ensure_example ip_pipeline ip_pipeline/main.c
