#!/usr/bin/env bash
# Unpacks servers of Debian 13 for the tests into FOLDER: PostgreSQL 17 with pgvector, and Ceph's object gateway. Prints the variables
# that name their programs to the tests. It installs nothing: packages come from the mirror that this machine's apt uses, with lists and a
# cache of their own, and need no root. The programs run with the C library that they were built for, through the loader that was unpacked
# with them.
set -euo pipefail
suite=trixie
packages=(postgresql-17 postgresql-17-pgvector radosgw)
# Their dependencies that servers of tests do not use, and which are most of the download.
unused='^(libllvm|perl|libperl|locales|ssl-cert|postgresql-common|postgresql-client-common|sysvinit|systemd)'
unused+='|^(python3|libpython|librgw|librbd|libcephfs|libradosstriper|libglib|cryptsetup|libcryptsetup|dpkg|tar|passwd|openssl$|tzdata)'

[ $# = 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
root=$(mkdir -p "$1" && cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 -E '/debian/?$') ||
  { echo "this machine's apt has no mirror of Debian" >&2; exit 1; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] && signed="[signed-by=$keyring] " || signed=
echo "deb $signed$mirror $suite main" >"$work/sources.list"
mkdir -p "$work"/{state/lists,cache/archives}/partial
: >"$work/status"
apt=(apt-get -qq -o "Dir::State=$work/state" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
  -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o Acquire::Languages=none -o APT::Sandbox::User=)

"${apt[@]}" update >&2
needed=$("${apt[@]}" install --simulate --no-install-recommends "${packages[@]}" | awk '$1 == "Inst" { print $2 }' | grep -Ev "$unused")
cd "$work/cache/archives"
# Each is checked against the signed lists.
"${apt[@]}" download $needed >&2
for package in *.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --exclude=./usr/share/{doc,man,locale} --no-same-owner
done

postgres=$root/usr/lib/postgresql/17/bin
ceph=$root/usr/bin
libraries=$(find "$root" -name libc.so.6 -printf '%h\n' -quit)
loader=$(find "$libraries" -maxdepth 1 -name 'ld-linux*.so.*' -print -quit)
[ -n "$loader" ] || { echo "the packages have no loader" >&2; exit 1; }
# Without its library of compiled expressions a server interprets them.
rm -f "$root"/usr/lib/postgresql/17/lib/llvmjit.so
for program in "$postgres"/* "$ceph"/radosgw{,-admin}; do
  # Programs of an earlier run are replaced.
  [[ $program != *.elf && $(head -c 4 "$program" | tail -c 3) = ELF ]] || continue
  mv "$program" "$program.elf"
  # The servers find each other, and their files, by the path that they were called with.
  printf '#!/bin/sh\nexec %s --argv0 "$0" --library-path %s "$0.elf" "$@"\n' "$loader" "$libraries:$libraries/ceph" >"$program"
  chmod 755 "$program"
done
chmod -R a+rX "$root"
echo "KBSYNC_TEST_PGVECTOR=$postgres"
echo "KBSYNC_TEST_CEPH=$ceph"
