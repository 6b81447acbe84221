#!/bin/sh
# image-root.sh PROJECT ROOT [ARCH]: fills the folder ROOT with all that is in the image. That is Node, the iptables programs of both flavours, the libraries
# of these, and the program as it was built in PROJECT. There is no shell and no package manager: nothing here needs one. ROOT.cdx.json tells what it is
# made of (sbom.mjs).
# ARCH, in Debian's words: Node and Debian's packages are those of pins.json, gathered beside ROOT (system.mjs). Without it they are this machine's, whatever
# their versions. The addon has been built before.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
project=$1
root=$2
own=$(dpkg --print-architecture)
arch=${3:-$own}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
if [ "$#" -lt 3 ]; then
  system=
  version=$(node -p process.versions.node)
else
  system=$root.system
  node "$here/system.mjs" "$arch" "$system"
  version=$(cat "$system/node-version")
fi
if [ "$arch" = "$own" ]; then addon=build/Release/pointsman.node; else addon=prebuilds/linux-$arch/pointsman.node; fi

die() {
  echo "image-root.sh: $1" >&2
  exit 1
}

# Paths in the system of what the image has from it.
taken=$(mktemp)
trap 'rm "$taken"' EXIT

# copy FROM TO: a file of the system.
copy() {
  mkdir -p "$root${2%/*}"
  cp -L "$system$1" "$root$2"
  echo "$1" >> "$taken"
}

# program NAME: where the system has it.
program() {
  for folder in $(echo "$PATH" | tr : ' '); do
    if [ -x "$system$folder/$1" ]; then
      echo "$folder/$1"
      return
    fi
  done
  die "there is no $1"
}

# libraries FILE...: copies the loader and the libraries that these files name, and what those name.
libraries() {
  for name in $(LC_ALL=C readelf -Wdl "$@" | sed -nE '/\[ld-/d; s/^.*\(NEEDED\).*\[(.*)\]$/\1/p; s/^.*interpreter: (.*)\]$/\1/p' | sort -u); do
    for path in "$name" "/lib/$triplet/$name" "/usr/lib/$triplet/$name"; do
      if [ "${path#/}" = "$path" ] || [ ! -e "$system$path" ]; then continue; fi
      if [ ! -e "$root$path" ]; then
        copy "$path" "$path"
        libraries "$system$path"
      fi
      continue 2
    done
    die "$*: there is no $name"
  done
}

# put NAME PATH: copies a program, and its libraries.
put() {
  from=$(program "$1")
  copy "$from" "$2"
  libraries "$system$from"
}

for folder in bin sbin lib lib64; do
  mkdir -p "$root/usr/$folder"
  ln -s "usr/$folder" "$root/$folder"
done
mkdir -p "$root/etc" "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/var/lib/dpkg/status.d"
mkdir -m 1777 "$root/tmp"
ln -s /run "$root/var/run"
echo 'root:x:0:0:root:/:/sbin/nologin' > "$root/etc/passwd"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"

extensions=$(cd "$system/" && echo usr/lib/*/xtables)
triplet=$(basename "$(dirname "$extensions")")
[ -e "$project/$addon" ] || die "there is no $addon: npm run build:native, or build:arm64"
put node /usr/local/bin/node
libraries "$project/$addon"
# Starts Node, by the first line of main.js.
put env /usr/bin/env

for extension in "$system/$extensions"/*.so; do copy "${extension#"$system"}" "${extension#"$system"}"; done
libraries "$root/$extensions"/*.so
for flavor in legacy nft; do
  multi=xtables-$flavor-multi
  put "$multi" "/usr/sbin/$multi"
  for family in iptables ip6tables; do
    for action in '' -restore -save; do
      ln -s "$multi" "$root/usr/sbin/$family-$flavor$action"
      ln -sf "$multi" "$root/usr/sbin/$family$action"
    done
  done
done
# The legacy flavour loads its modules by it, where it may: kmod does what its name says.
put kmod /usr/sbin/modprobe

mkdir -p "$root/pointsman/${addon%/*}"
cp -L "$project/$addon" "$root/pointsman/$addon"
cp -RL "$project/package.json" "$project/dist" "$root/pointsman"
# What V8 compiled here is of no use on another architecture.
[ "$arch" = "$own" ] || rm -f "$root"/pointsman/dist/*.cache
ln -s /pointsman/dist/main.js "$root/usr/local/bin/pointsman"
ln -s pointsman "$root/usr/local/bin/kube-proxy"

# Where scanners look for Debian's packages in an image without a package manager. Lists have a path with or without /usr, which are the same folder.
database=$system/var/lib/dpkg
sed -E 's#^/usr(/.*)$#&\n\1#; t; s#^/.*$#&\n/usr&#' "$taken" | grep -lxFf - "$database"/info/*.list | while read -r list; do
  package=$(basename "$list" .list)
  dpkg-query --admindir="$database" -s "$package" > "$root/var/lib/dpkg/status.d/${package%:*}"
done

node "$here/sbom.mjs" "$project" "$root" "$arch" "$version" > "$root.cdx.json"
