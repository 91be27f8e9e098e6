# SPDX-License-Identifier: BSD-3-Clause
# `make help` lists the targets. Every target that needs it sets the machine and .venv up first (scripts/setup.sh).

VENV ?= .venv
PYTHON ?= /usr/bin/python3
# `no`: leave the system's packages alone.
PACKAGES ?= yes
# Further options for pytest, for example ARGS="-k ovs".
ARGS ?=

PYTEST = $(VENV)/bin/pytest
# The plugin on the real host.
END_TO_END = $(wildcard tests/plugin/test_*end_to_end.py)
# Each a program of its own, outside the package.
SCRIPTS = $(wildcard benchmarks/*.py scripts/*.py scripts/setup/*.py scripts/sriov/*.py)
# A package of programs.
VALIDATION = $(wildcard benchmarks/validation/*.py benchmarks/validation/*/*.py)
SOURCES_C = $(shell find workload benchmarks -name '*.[ch]' 2>/dev/null)

export VENV PYTHON PACKAGES

.DEFAULT_GOAL := install
.PHONY: help install demo test test-all test-ci test-c test-unit test-host conformance test-lowest test-dpdk test-sriov test-paths test-switches get-vpp get-ovs get-dpdk lint fuzz torture bench validate docs clean

help: ## this list
	@echo "Targets (variables: ARGS=\"pytest options\" VENV=DIR PYTHON=PATH PACKAGES=no):"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

install: ## packages (root, Debian), .venv, the wheel in it; default
	@scripts/setup.sh

demo: install ## every switch that this host can run, in 2 minutes, results in reports/
	$(PYTEST) scenarios/test_demo.py $(ARGS)

test: install ## lint, C tests, every test that is not slow: packets over every switch here; 6 minutes at most; host tests need root
	@$(VENV)/bin/python scripts/lanes.py test $(ARGS)

test-all: install ## the slow tests: faults at length, two hosts, searches, builds; 19 minutes at most; needs root
	@$(VENV)/bin/python scripts/lanes.py test-all $(ARGS)

test-ci: install ## the tests of both lanes at once, as .ci/run; 23 minutes at most; needs root
	@$(VENV)/bin/python scripts/lanes.py test-ci $(ARGS)

test-c: install ## C tests as shipped, and with address and undefined-behaviour sanitizers; the fuzz targets for seconds
	scripts/test-c.sh

test-unit: install ## Python tests that change nothing on the host, slow ones too
	$(PYTEST) tests/unit tests/plugin $(addprefix --ignore=,$(END_TO_END)) $(ARGS)

test-host: install ## containers, switches, packets, faults, slow ones too; needs root
	$(PYTEST) tests/host $(END_TO_END) $(ARGS)

conformance: install ## what each switch does with frames, against what its driver declares; every port, 12 minutes (test-all has a short form); needs root
	$(PYTEST) --pyargs pytest_icbench.conformance --icbench-port all $(ARGS)

test-lowest: install ## unit tests with the lowest versions that pyproject.toml declares, then with the newest pytest
	scripts/test-lowest.sh $(ARGS)

test-dpdk: install ## the workload against the DPDK of Debian 12, 13 and unstable; needs root
	scripts/test-dpdk.sh

test-sriov: install ## sriov in a QEMU guest with an emulated card; cgroup v2; minutes; make test says when it last ran; needs root, Debian
	ARGS="$(ARGS)" scripts/test-sriov.sh

test-paths: install ## the kernel's paths in the same guest, whose kernel has netkit, ipvlan and OVS: right or wrong, never how fast; minutes; needs root, Debian
	LANE=paths ARGS="$(ARGS)" scripts/test-sriov.sh

test-switches: install ## VPP and Snabb, by their trees ICBENCH_TEST_VPP="DIR…" and ICBENCH_TEST_SNABB=DIR; half an hour a VPP; make test says when it last ran; needs root
	ARGS="$(ARGS)" scripts/test-switches.sh

get-vpp: ## a switch's packages, unpacked below /opt/icbench; nothing is installed or started; ARGS="26.06", ARGS=--dry-run; as get-ovs, get-dpdk
get-vpp get-ovs get-dpdk: install
	$(VENV)/bin/icbench get $(@:get-%=%) $(ARGS)

lint: install ## ruff, mypy --strict, import-linter, clang-format, cppcheck, clang --analyze, gcc -fanalyzer
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --no-explicit-package-bases $(SCRIPTS) $(VALIDATION)
	$(VENV)/bin/lint-imports
	@echo clang-format; $(VENV)/bin/clang-format --dry-run -Werror $(SOURCES_C)
	@if command -v cppcheck >/dev/null; then echo cppcheck; \
		cppcheck --error-exitcode=1 --enable=warning,performance,portability --quiet --std=c11 -D_GNU_SOURCE -DHAVE_XDP -DHAVE_DPDK \
			-Iworkload/src $(filter workload/src/%.c,$(SOURCES_C)); \
	else echo "no cppcheck here: install it to have the C program analysed"; fi
	@echo "clang --analyze, gcc -fanalyzer"; $(VENV)/bin/python scripts/analyse.py $(filter workload/src/%.c,$(SOURCES_C))

fuzz: install ## the workload's parsers under sanitizers, ten minutes each, from what earlier runs found; shorter by ARGS=-max_total_time=20
	scripts/fuzz.sh $(ARGS)

torture: install ## an hour of kills, faults and hostile inputs (test-all has a short form): docs/explanation/torture.md; parts by ARGS="--only kills --count 20"; needs root
	$(VENV)/bin/python -m tests.torture $(ARGS)

bench: install ## the tool against other tools, side by side; needs root
	@for program in $$(grep -l __main__ benchmarks/*.py); do \
		echo "== $$program"; $(VENV)/bin/python $$program $(ARGS) || failed=yes; \
	done; [ -z "$$failed" ]

validate: install ## what the numbers are worth, claim by claim: docs/explanation/validation.md; needs root
	PYTHONPATH=benchmarks $(VENV)/bin/python -P -m validation $(ARGS)

docs: install ## the documents as a site in build/site, to be read and searched without a network; links are checked
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

clean: ## remove what was built and cached; .venv and reports stay
	rm -rf build build-* dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
