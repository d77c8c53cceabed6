# The checks of the Debian package, for scripts/deb.
# shellcheck shell=bash disable=SC2154 # scripts/deb sets scratch and version

# check_package FOLDER: writes the package into the folder, and fails if anything about it is wrong. The folder also
# keeps a Debian for the next check.
check_package() {
  need_to_package
  check_versions
  write_twice "$1"
  printf 'deb: two builds are the same %d bytes with the SHA-256 ' "$(stat --format=%s "$PACKAGE")"
  sha256sum "$PACKAGE" | cut --characters=-64
  # It warns of being run by root, which it needn't be.
  lintian --allow-root --fail-on error,warning "$PACKAGE"
  echo "deb: lintian finds no error and no warning, but for scripts/deb.d/overrides"
  local codename
  # This machine's release, and the one after it.
  for codename in "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" trixie; do
    check_in_chroot "$1" "$codename"
  done
}

# check_versions: fails if the package of a later state doesn't replace the package of a release.
check_versions() {
  local change=$'### Added\n\n- A change.\n' release=$'## [1.0.0] - 2027-01-02\n' first=$'## [Unreleased]\n'
  has_version "1.0.0~197001010000 Thu, 01 Jan 1970 00:00:00 +0000" "$first$change"
  has_version "1.0.0 Sat, 02 Jan 2027 12:00:00 +0000" "$first$release$change"
  has_version "1.0.0+197001010000 Thu, 01 Jan 1970 00:00:00 +0000" "$first$change$release$change"
}

# has_version EXPECTED TEXT: fails if a CHANGELOG.md with the text doesn't give this version and date.
has_version() {
  local found
  found=$(write_changelog 1.0.0 0 <<<"$2" | dpkg-parsechangelog --file - \
    | sed -n 's/^Version: //p; s/^Date: //p' | paste --serial --delimiters ' ')
  [[ $found == "$1" ]] || die "the changelog of the package has version and date '$found' instead of '$1'"
}

# write_twice FOLDER: writes the package into the folder, and fails if it depends on the time zone, the language, the
# mask of modes or the variables of dpkg.
write_twice() {
  local first=$1
  (
    umask 077
    export TZ=Asia/Tokyo LC_ALL=C DPKG_DEB_COMPRESSOR_LEVEL=1
    write_package "$scratch/again"
  )
  write_package "$first"
  cmp "$PACKAGE" "$scratch/again/${PACKAGE##*/}" || die "two builds give two packages"
}

# check_in_chroot FOLDER CODENAME: installs the package in a Debian that has nothing but what each has, and uses it, with
# /proc and without; removes it, and looks for files that are left.
check_in_chroot() {
  local begun=$SECONDS proc nats=libnats3.4
  [[ $2 == bookworm ]] || nats=libnats3.10
  # The libraries that the program opens.
  LIBRARIES=(libcurl4 libreadline8 libsqlite3-0 libssl3 "$nats")
  # Those of checks that were killed.
  as_root find "$1" -maxdepth 1 -name 'chroot.*' -mmin +600 -exec rm -rf --one-file-system {} +
  chroot=$(mktemp -d "$1/chroot.XXXXXX")
  trap 'remove_chroot; rm -rf "$scratch"' EXIT
  make_chroot "$1" "$2"
  # Others than root use it, too.
  as_root chown 0:0 "$chroot"
  as_root chmod 755 "$chroot"
  as_root install -m 644 "$PACKAGE" "$chroot/flowlua.deb"
  as_root install -m 755 "$ROOT/scripts/deb.d/try" "$chroot/try"
  # It looks as if systemd ran; its calls are noted.
  as_root mkdir -p "$chroot/run/systemd/system"
  printf '#!/bin/sh\necho "$*" >>/calls\n' | as_root tee "$chroot/usr/bin/systemctl" >/dev/null
  as_root chmod 755 "$chroot/usr/bin/systemctl"
  as_root touch "$chroot/calls"
  as_root chroot "$chroot" find / -xdev -not -path '/proc/*' >"$scratch/before"
  for proc in without_proc with_proc; do
    if [[ $proc == with_proc ]] && ! can_mount; then
      echo "skipped: the package with /proc: this container can't mount it"
      continue
    fi
    "$proc" apt-get install --yes --no-install-recommends /flowlua.deb
    "$proc" /try "$version" none
    run_example "$proc"
    # An upgrade leaves what there is, and the configuration of the service.
    as_root mkdir -p "$chroot/etc/systemd/system/multi-user.target.wants" "$chroot/var/cache/private/flowlua"
    as_root ln -s private/flowlua "$chroot/var/cache/flowlua"
    as_root ln -s /usr/lib/systemd/system/flowlua-join.service "$chroot/etc/systemd/system/multi-user.target.wants"
    as_root touch "$chroot/etc/flowlua-join.conf"
    "$proc" apt-get install --yes --no-install-recommends --reinstall /flowlua.deb
    "$proc" /try "$version" none
    "$proc" apt-get remove --yes flowlua
    [[ -e $chroot/etc/flowlua-join.conf ]] || die "removing the package removes the configuration of the service"
    [[ ! -e $chroot/usr/bin/flowlua ]] || die "the program is still there after the package was removed"
    "$proc" apt-get purge --yes flowlua
    nothing_is_left
    check_calls
  done
  # Each package that an error names exists, and makes the difference.
  without_proc apt-get install --yes --no-install-recommends /flowlua.deb libssl3
  without_proc /try "$version" some
  without_proc apt-get install --yes --no-install-recommends "${LIBRARIES[@]}"
  without_proc /try "$version" all
  without_proc apt-get purge --yes flowlua
  remove_chroot
  echo "deb: installed, used, upgraded and purged in $2 in $((SECONDS - begun))s"
}

# run_example COMMAND: an example prints there what it prints here.
run_example() {
  diff <(mask_times <"$ROOT/examples/login.expected") \
    <(OUTPUT=shown "$1" flowlua /usr/share/doc/flowlua/examples/login.lua | mask_times) \
    || die "the installed examples/login.lua prints something else"
}

# check_calls: fails if the package has done anything else with its service, when it was installed, upgraded, removed
# and purged, than it should.
check_calls() {
  local reload='--system daemon-reload'
  diff <(printf '%s\n' "$reload" "$reload" 'stop flowlua-join.service' "$reload") "$chroot/calls" \
    || die "the package calls systemctl otherwise (>) than it should (<)"
  as_root truncate --size 0 "$chroot/calls"
}

# nothing_is_left: fails if there is a file that wasn't there before the package.
nothing_is_left() {
  # The notes of dpkg and apt about all packages, and folders of Debian that the check itself has made.
  local own='^/(var/(log|cache/apt|cache/debconf/tmp.ci|lib/apt|lib/dpkg/(status|available|lock|triggers|info$|updates|diversions|statoverride)))'
  own+='|^/etc/systemd/system/multi-user.target.wants$|^/etc/systemd(/system)?$|^/var/cache/private$'
  as_root chroot "$chroot" find / -xdev -not -path '/proc/*' >"$scratch/after"
  if LC_ALL=C comm -13 <(LC_ALL=C sort "$scratch/before") <(LC_ALL=C sort "$scratch/after") \
    | grep --extended-regexp --invert-match "$own"; then
    die "these files are left after the package was purged"
  fi
}

# without_proc COMMAND...: runs it in the chroot, quietly unless OUTPUT is set.
without_proc() {
  enter chroot "$chroot" "$@"
}

# with_proc COMMAND...: the same, with /proc. The mount is of a namespace that ends with the command, however it ends.
with_proc() {
  # shellcheck disable=SC2016 # the inner shell expands it
  enter unshare --mount sh -c 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"' "$chroot" "$@"
}

enter() {
  local quiet=(quietly)
  [[ ! ${OUTPUT-} ]] || quiet=()
  ${quiet[@]+"${quiet[@]}"} as_root env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} "$@"
}

can_mount() {
  # shellcheck disable=SC2016 # the inner shell expands it
  as_root unshare --mount sh -c 'mount --rbind /proc "$0/proc"' "$chroot" 2>/dev/null
}

# A mount would end with the process that made it; --one-file-system is for the day when one doesn't.
remove_chroot() {
  as_root rm -rf --one-file-system "$chroot"
}

# make_chroot FOLDER CODENAME: fills the folder $chroot with the smallest Debian of a release, from the archives that
# this machine's apt uses. FOLDER keeps it for a week.
make_chroot() {
  local codename=$2 archive kept mirror
  archives "$codename" >"$scratch/archives"
  if [[ ! -s $scratch/archives ]]; then
    quietly as_root apt-get --quiet update
    archives "$codename" >"$scratch/archives"
  fi
  read -r archive _ < <(awk -v codename="$codename" '$2 == codename' "$scratch/archives") \
    || die "apt has no archive of Debian $codename"
  kept=$1/debian-$(cat "$scratch/archives" - <<<"${LIBRARIES[*]}" | md5sum | cut -c 1-12).tar
  find "$1" -maxdepth 1 -name 'debian-*.tar*' -mtime +6 -delete
  if [[ ! -e $kept ]]; then
    note "making a Debian $codename…"
    local include=() namespace=()
    [[ $archive != https:* ]] || include=(--include=ca-certificates)
    # The mounts of debootstrap end with it; where nothing can be mounted, it can do without.
    ! can_mount_anything || namespace=(unshare --mount)
    quietly as_root ${namespace[@]+"${namespace[@]}"} debootstrap --variant=minbase ${include[@]+"${include[@]}"} \
      "$codename" "$chroot" "$archive"
    while read -r archive mirror; do
      printf 'deb %s %s main\n' "$archive" "$mirror"
    done <"$scratch/archives" | as_root tee "$chroot/etc/apt/sources.list" >/dev/null
    # A proxy, for example.
    apt-config dump Acquire | as_root tee "$chroot/etc/apt/apt.conf.d/machine" >/dev/null
    without_proc apt-get clean
    without_proc apt-get update
    without_proc apt-get install --yes --download-only --no-install-recommends "${LIBRARIES[@]}"
    as_root tar --create --one-file-system --file "$kept.new" --directory "$chroot" .
    as_root mv "$kept.new" "$kept"
  else
    as_root tar --extract --file "$kept" --directory "$chroot"
  fi
  as_root cp /etc/resolv.conf "$chroot/etc/resolv.conf"
}

can_mount_anything() {
  as_root unshare --mount true 2>/dev/null
}

# archives CODENAME: lines with URL and suite of the archives of Debian that apt uses for the machine's release, with the
# name of the wanted one.
archives() {
  # shellcheck disable=SC2016 # these are fields of apt
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' \
    | awk -v own="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" -v codename="$1" \
      '$2 == own || index($2, own "-") == 1 { sub(own, codename, $2); print }' | LC_ALL=C sort --unique
}
