# A limit of time for tests, which says what hangs.
# shellcheck shell=bash

# limited SECONDS COMMAND...: runs it, and returns its status. When it takes longer, prints its processes and the stacks
# of their threads, and ends them: a test that hangs fails with a reason, and what comes after it still runs.
limited() {
  local seconds=$1 shell=$BASHPID watch status=0
  shift
  # The command stays in the foreground: a background job of a script doesn't get Ctrl-C.
  end_after "$seconds" "$shell" "$*" &
  watch=$!
  "$@" || status=$?
  # It isn't killed amid its report: its status is a killed process's, but the reason is what matters.
  kill -USR1 "$watch" 2>/dev/null || true
  wait "$watch" 2>/dev/null || true
  return "$status"
}

# end_after SECONDS SHELL TEXT: ends what SHELL runs after so many seconds, unless it gets SIGUSR1 before.
end_after() {
  local end=$((SECONDS + $1)) shell=$2 own=$BASHPID process
  trap 'exit 0' USR1
  while ((SECONDS < end)); do
    # `wait` ends at a signal, and `sleep` keeps no pipe of the caller open.
    sleep 1 >/dev/null 2>&1 &
    wait $! || true
    kill -0 "$shell" 2>/dev/null || return 0
  done
  trap '' USR1
  local processes=()
  while read -r process; do
    processes+=("$process")
  done < <(descendants "$shell" "$own")
  printf '%s: FAILED: it took more than %d s: %s\n' "${0##*/}" "$1" "$3"
  show_processes "${processes[@]}"
  kill -KILL "${processes[@]}" 2>/dev/null || true
}

# descendants PROCESS WITHOUT: the processes that it and those below it have started, without WITHOUT and those below it.
descendants() {
  local child
  for child in $(pgrep -P "$1"); do
    if [[ $child != "$2" ]]; then
      printf '%s\n' "$child"
      descendants "$child" "$2"
    fi
  done
}

# show_processes PROCESS...: what they do, with stacks where there is a debugger; the tests write what they hold back.
show_processes() {
  local process
  ps -o pid,ppid,stat,etime,time,rss,wchan:20,args -p "$(IFS=,; printf '%s' "$*")" | cut --characters=-200
  command -v gdb >/dev/null || return 0
  for process in "$@"; do
    case $(ps -o comm= -p "$process") in
      flowlua*) timeout 60 gdb --batch --pid "$process" -ex 'thread apply all backtrace 16' \
        -ex 'call (int) fflush(0)' 2>&1 | grep --extended-regexp '^(Thread|#)' | cut --characters=-200 || true ;;
    esac
  done
}
