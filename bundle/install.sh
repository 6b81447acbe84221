#!/bin/sh
# What npm runs when it installs the package: where the prebuilt addon does not load, one is compiled. Nothing is downloaded. A checkout is built by `npm run build`.
set -eu
cd "$(dirname "$0")/.."
[ ! -d src ] || exit 0
platform=$(node -p '`${process.platform}-${process.arch}`')
if node -e 'require(process.argv[1])' "$PWD/prebuilds/$platform/pointsman.node" 2> /dev/null; then exit 0; fi
exec sh native/build.sh
