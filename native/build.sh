#!/bin/sh
# build.sh [arm64]: builds the addon, into build/Release; for arm64, elsewhere, by Debian's cross compiler (g++-aarch64-linux-gnu) into prebuilds/linux-arm64,
# without the names that only a debugger wants. Nothing is downloaded: Node-API's headers are those of the package node-api-headers.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
arch=${1:-$(node -p process.arch)}
if [ "$arch" != "$(node -p process.arch)" ]; then
  [ "$arch" = arm64 ] || { echo "build.sh: there is no cross compiler for \"$arch\" here" >&2; exit 1; }
  export CXX=aarch64-linux-gnu-g++ CC=aarch64-linux-gnu-gcc
  # node-gyp empties build/, which holds this machine's, and knows no other name for it.
  made=$(mktemp -d)
  for each in binding.gyp native node_modules package.json; do ln -s "$PWD/$each" "$made"; done
else made=.
fi

# Its own words on how it goes are left out, the compiler's are not, and where it fails all are told.
log=$(mktemp)
trap 'rm -rf "$log" ${made#.}' EXIT
# Of an earlier build stays what has not changed.
node-gyp configure build --jobs max --directory="$made" --arch="$arch" --nodedir="$PWD/native/gyp" > "$log" 2>&1 || {
  status=$?
  cat "$log" >&2
  echo "build.sh: the addon was not built (status $status); the reason is above" >&2
  exit "$status"
}
[ "$made" = . ] || install -D -s --strip-program=aarch64-linux-gnu-strip "$made/build/Release/pointsman.node" "prebuilds/linux-$arch/pointsman.node"
