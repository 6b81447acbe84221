#!/bin/sh
# bare-root.sh [-u] [-o] [-w] COMMAND: runs a command of the shell where there is only what the README names: a root file system of Debian's smallest variant
# with Node, g++, make and python3, and beside these git and ca-certificates. No headers of Node are there. The working folder is a clone of what is committed.
#
#   -u  as an ordinary user, who may make user namespaces
#   -o  offline: in a network namespace that has a loopback link alone
#   -w  the working folder is this one as it is, built or not; what is written goes to memory
#
# Debian's release, the sources of apt and npm, and Node itself are those of this machine. Needs root and debootstrap. Exit status: the command's; 77: such a
# root cannot be had here. POINTSMAN_BARE_CACHE: the folder that it is kept in (~/.cache/pointsman-bare, 600 MB).
set -eu
user='' offline='' as_it_is=''
while getopts uow option; do
  case $option in
    u) user=1 ;;
    o) offline=--net ;;
    w) as_it_is=1 ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || { echo "usage: bare-root.sh [-u] [-o] [-w] COMMAND" >&2; exit 2; }
project=$(cd "$(dirname "$0")/.." && pwd)
unavailable() { echo "no bare root: $*" >&2; exit 77; }

[ "$(id -u)" -eq 0 ] || unavailable 'root is needed'
command -v debootstrap > /dev/null || unavailable 'there is no debootstrap'
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
cache=${POINTSMAN_BARE_CACHE:-$HOME/.cache/pointsman-bare}
root=$cache/$release
if [ ! -e "$root" ]; then
  mkdir -p "$cache"
  made=$(mktemp -d "$cache/building-XXXXXX")
  trap 'rm -rf "$made"' EXIT
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" 'Created-By: Packages' | head -n 1)
  debootstrap --variant=minbase --include=ca-certificates,g++,make,python3,git "$release" "$made" "$mirror" > "$made.log" 2>&1 ||
    unavailable "$(tail -n 1 "$made.log")"
  rm -f "$made.log" "$made"/etc/apt/sources.list "$made"/etc/apt/sources.list.d/*
  # How this machine reaches its registries.
  for each in apt/sources.list apt/sources.list.d apt/apt.conf.d apt/keyrings ssl/certs/ca-certificates.crt; do
    [ ! -e "/etc/$each" ] || cp -RL --remove-destination "/etc/$each" "$made/etc/$(dirname "$each")/"
  done
  cp -R /usr/share/keyrings "$made/usr/share/"
  chroot "$made" useradd --create-home --shell /bin/bash user
  chmod 755 "$made"
  mv -T "$made" "$root"
  trap - EXIT
fi

node=$(readlink -f "$(command -v node)")
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
home=/root
[ -z "$user" ] || home=/home/user
variables=$(env | grep -iE '^(https?_proxy|no_proxy|POINTSMAN_[A-Z_]+)=' || true)
registry=$(npm config get registry 2> /dev/null)
export root project user as_it_is home variables registry node npm
# pivot_root: in a chroot the kernel lets an ordinary user make no user namespace.
exec unshare --mount --pid --fork --kill-child $offline sh -euc '
  mount --make-rprivate /
  mkdir -p "$root/memory"
  mount -t tmpfs -o size=75% memory "$root/memory"
  cd "$root/memory"
  mkdir whole upper work lower checkout-upper checkout-work
  # What the command writes is gone with it.
  mount -t overlay -o "lowerdir=$root,upperdir=upper,workdir=work" overlay whole
  cp "$node" whole/usr/local/bin/node
  mkdir -p whole/usr/local/lib/node_modules
  cp -R "$npm" whole/usr/local/lib/node_modules/npm
  for each in npm npx; do ln -sf "../lib/node_modules/npm/bin/$each-cli.js" "whole/usr/local/bin/$each"; done
  cp -L /etc/resolv.conf whole/etc/
  checkout=whole$home/pointsman
  if [ -n "$as_it_is" ]; then
    mkdir -p "$checkout"
    # metacopy: another owner does not copy what is in a file.
    mount -t overlay -o "lowerdir=$project,upperdir=checkout-upper,workdir=checkout-work,metacopy=on" overlay "$checkout"
  else
    git clone -q "$project" "$checkout"
  fi
  [ -z "$user" ] || chroot whole chown -R user: "$home"
  mount -t proc proc whole/proc
  mount --rbind /sys whole/sys
  mount --rbind /dev whole/dev
  mount -t tmpfs run whole/run
  mkdir -p whole/old
  cd whole
  pivot_root . old
  umount -l /old
  cd "$home/pointsman"
  set -f
  IFS="
"
  set -- env -i HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    npm_config_registry="$registry" NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt $variables bash -c "$1"
  [ -z "$user" ] || set -- setpriv --reuid user --regid user --init-groups "$@"
  exec "$@"
' sh "$1"
