# The folders that have changed lately, by which CI decides which of its dear steps run whole.
# shellcheck shell=bash

# The commit from which changes count: the last one that is half a day older than the present commit; the first
# one of a younger repository. Empty in a folder without history.
changed_base() {
  local time base
  time=$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null) || return 0
  base=$(git -C "$ROOT" rev-list -1 --before="$((time - 43200))" HEAD)
  [[ $base ]] || base=$(git -C "$ROOT" rev-list --max-parents=0 HEAD | tail -n 1)
  printf '%s\n' "$base"
}

# changed_files: the files that differ from then, uncommitted ones among them.
changed_files() {
  local base
  base=$(changed_base)
  [[ -z $base ]] || git -C "$ROOT" diff --name-only "$base" --
}

# has_changed PATTERN: whether the name of a file that has changed matches the extended regular expression. Without
# history everything counts as changed, and with FLOWLUA_CHECK_ALL.
has_changed() {
  [[ -z ${FLOWLUA_CHECK_ALL-} && $(changed_base) ]] || return 0
  grep --quiet --extended-regexp "$1" <<<"$(changed_files)"
}
