#!/bin/sh
# Builds a switch and measures it: "ci/gate.sh pr COMMIT" beside the build of that commit, "ci/gate.sh nightly" beside
# the nights before; see docs/how-to/ci.md. Copy it into your repository as ci/gate.sh, and change these four.
set -eu
: "${SWITCH:=ovs}"
: "${BUILD:=./boot.sh && ./configure && make -j2}"
: "${PROGRAM:=vswitchd/ovs-vswitchd}"
: "${ICBENCH:=/opt/icbench/bin}"
# What a runner keeps: the baseline, the history, and a copy of each night's program.
: "${KEPT:=/var/lib/icbench}"

rm -rf reports base # of earlier jobs, where the runner keeps its checkout
case $1 in
pr)
    git worktree prune
    git worktree add --detach base "$2"
    (cd base && sh -ec "$BUILD")
    sh -ec "$BUILD"
    set -- --icbench-binary "$SWITCH=$PWD/base/$PROGRAM" --icbench-candidate "$SWITCH:pr=$PWD/$PROGRAM"
    ;;
nightly)
    sh -ec "$BUILD"
    program=$KEPT/programs/$(git rev-parse HEAD)/$(basename "$PROGRAM")
    [ -e "$program" ] || install -D "$PROGRAM" "$program"
    gate=--icbench-save
    [ -d "$KEPT/baselines/main" ] && gate=--icbench-compare
    set -- --icbench-binary "$SWITCH=$program" --icbench-rounds 3 "--icbench-baselines=$KEPT/baselines" "$gate=main" \
        "--icbench-history=$KEPT/history.jsonl"
    ;;
esac

code=0
"$ICBENCH/pytest" --pyargs pytest_icbench.scenarios.test_gate --icbench-switch "$SWITCH" "$@" --icbench-budget 9m \
    --icbench-require --icbench-exit-codes --icbench-reports=reports --junitxml reports/junit.xml || code=$?
if [ "${gate:-}" = --icbench-compare ]; then
    # A further session of the baseline; what is REGRESSED or INVALID is left out.
    "$ICBENCH/icbench" accept main --all --unchanged --run reports/latest --baselines "$KEPT/baselines" || true
fi
exit $code
