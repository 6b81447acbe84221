#!/bin/sh
# build.sh [arm64]: builds the addon, into build/Release; for arm64, elsewhere, by Debian's cross compiler (g++-aarch64-linux-gnu) into prebuilds/linux-arm64,
# without the names that only a debugger wants. Headers beside the running Node or of the distribution are used (Node-API is stable across versions, and
# its headers are the same for every machine); elsewhere node-gyp finds its own.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
arch=${1:-$(node -p process.arch)}
if [ "$arch" != "$(node -p process.arch)" ]; then
  [ "$arch" = arm64 ] || { echo "build.sh: there is no cross compiler for \"$arch\" here" >&2; exit 1; }
  export CXX=aarch64-linux-gnu-g++ CC=aarch64-linux-gnu-gcc
  # node-gyp empties build/, which holds this machine's, and knows no other name for it.
  made=$(mktemp -d)
  trap 'rm -r "$made"' EXIT
  for each in binding.gyp native node_modules package.json; do ln -s "$PWD/$each" "$made"; done
else made=.
fi

set -- --arch="$arch"
for prefix in "$(node -p 'path.dirname(path.dirname(process.execPath))')" /usr; do
  if [ -f "$prefix/include/node/node_api.h" ]; then
    set -- "$@" --nodedir="$prefix"
    break
  fi
done
node-gyp rebuild --jobs max --silent --directory="$made" "$@"
[ "$made" = . ] || install -D -s --strip-program=aarch64-linux-gnu-strip "$made/build/Release/pointsman.node" "prebuilds/linux-$arch/pointsman.node"
