#!/bin/sh
# image-root.sh PROJECT ROOT: fills the folder ROOT with all that is in the image. That is Node, the iptables programs of both flavours, the libraries of
# these, and the program as it was built in PROJECT. There is no shell and no package manager: nothing here needs one.
set -eu
project=$1
root=$2
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# put PROGRAM PATH [MODULE...]: copies a program, and the libraries that the loader finds for it and for the modules that it will open itself.
put() {
  from=$(readlink -f "$1")
  mkdir -p "$root${2%/*}"
  cp "$from" "$root$2"
  shift 2
  LD_TRACE_LOADED_OBJECTS=1 LD_PRELOAD="$*" "$from" | sed -nE 's/^.*[[:space:]]((\/usr)?\/lib[^ ]*) \(0x[0-9a-f]+\)$/\1/p' | while read -r library; do
    mkdir -p "$root${library%/*}"
    [ -e "$root$library" ] || cp -L "$library" "$root$library"
  done
}

for folder in bin sbin lib lib64; do
  mkdir -p "$root/usr/$folder"
  ln -s "usr/$folder" "$root/$folder"
done
mkdir -p "$root/etc" "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/var"
mkdir -m 1777 "$root/tmp"
ln -s /run "$root/var/run"
echo 'root:x:0:0:root:/:/sbin/nologin' > "$root/etc/passwd"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"

addon=build/Release/pointsman.node
put "$(command -v node)" /usr/local/bin/node "$(readlink -f "$project/$addon")"
# Starts Node with its options, by the first line of main.js.
put "$(command -v env)" /usr/bin/env

extensions=$(echo /usr/lib/*/xtables)
mkdir -p "$root$extensions"
cp -L "$extensions"/*.so "$root$extensions"
for flavor in legacy nft; do
  multi=xtables-$flavor-multi
  put "$(command -v "$multi")" "/usr/sbin/$multi" "$extensions"/*.so
  for family in iptables ip6tables; do
    for action in '' -restore -save; do
      ln -s "$multi" "$root/usr/sbin/$family-$flavor$action"
      ln -sf "$multi" "$root/usr/sbin/$family$action"
    done
  done
done
# The legacy flavour loads its modules by it, where it may.
if command -v modprobe > /dev/null; then put "$(command -v modprobe)" /usr/sbin/modprobe; fi

mkdir -p "$root/pointsman/${addon%/*}"
cp "$project/$addon" "$root/pointsman/$addon"
cp -RL "$project/package.json" "$project/dist" "$root/pointsman"
ln -s /pointsman/dist/main.js "$root/usr/local/bin/pointsman"
ln -s pointsman "$root/usr/local/bin/kube-proxy"
