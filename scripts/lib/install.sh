# Shared by scripts/install and scripts/uninstall, after common.sh.
# shellcheck shell=bash

# read_prefix [PREFIX]: sets PREFIX, where flowlua is to be found; TARGET, where that is for now; and
# MANIFEST, the list of what was installed.
read_prefix() {
  (($# <= 1)) || die "one argument at most: the prefix"
  PREFIX=${1-/usr/local}
  case $PREFIX in
    -*) die "unknown option: $PREFIX (the only argument is the prefix)" ;;
    /*) ;;
    '') die "the prefix is empty" ;;
    *) PREFIX=$PWD/$PREFIX ;;
  esac
  PREFIX=${PREFIX%/}
  TARGET=${DESTDIR-}$PREFIX
  # shellcheck disable=SC2034 # for the scripts that source this file
  MANIFEST=$TARGET/share/flowlua/manifest
}
