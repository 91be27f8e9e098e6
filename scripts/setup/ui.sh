# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the set-up says: one line a step, live on a terminal and plain in a pipe; everything else goes to $LOG.

say() {
	printf 'icbench: %s\n' "$*" >&2
}

die() {
	say "$*"
	exit 1
}

_last_log_line() {
	tail -c 2000 "$LOG" 2>/dev/null | tr '\r' '\n' | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c "1-$1"
}

# Shows that the step named $1 is still under way. Runs in the background until killed.
_ticker() {
	local what=$1 began=$SECONDS columns
	columns=$(tput cols 2>/dev/null || echo 80)
	if [ -t 2 ]; then
		while sleep 0.5 2>/dev/null; do
			printf '\r\033[K%.*s' "$((columns - 1))" \
				"icbench: $what, $((SECONDS - began)) s: $(_last_log_line "$columns")" >&2
		done
	else
		while sleep 10 2>/dev/null; do
			say "$what, $((SECONDS - began)) s: $(_last_log_line 100)"
		done
	fi
}

# step WHAT COMMAND...: runs COMMAND with its output in $LOG; on failure shows the log's end and ends the set-up.
step() {
	local what=$1 began=$SECONDS ticker status=0
	shift
	[ -t 2 ] || say "$what ..."
	printf '\n=== %s: %s\n' "$what" "$*" >>"$LOG"
	_ticker "$what" 9>&- >/dev/null &
	ticker=$!
	# shellcheck disable=SC2064
	trap "kill $ticker 2>/dev/null" EXIT
	# A subshell, because a function run here has exit traps of its own.
	("$@") >>"$LOG" 2>&1 </dev/null 9>&- || status=$?
	kill "$ticker" 2>/dev/null
	wait "$ticker" 2>/dev/null
	trap - EXIT
	[ -t 2 ] && printf '\r\033[K' >&2
	if [ "$status" -ne 0 ]; then
		tail -n 25 "$LOG" | sed 's/^/    /' >&2
		die "$what failed with exit code $status; the whole log is ${LOG#"$ROOT"/}"
	fi
	say "$what: done in $((SECONDS - began)) s"
}
