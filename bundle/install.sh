#!/bin/sh
# What npm runs when it installs the package: where the prebuilt addon does not load, one is compiled. Nothing is downloaded: Node's headers have to be
# there. A checkout is built by `npm run build`.
set -eu
cd "$(dirname "$0")/.."
[ ! -d src ] || exit 0
platform=$(node -p '`${process.platform}-${process.arch}`')
if node -e 'require(process.argv[1])' "$PWD/prebuilds/$platform/pointsman.node" 2> /dev/null; then exit 0; fi
for prefix in "$(node -p 'path.dirname(path.dirname(process.execPath))')" /usr; do
  if [ -f "$prefix/include/node/node_api.h" ]; then exec sh native/build.sh; fi
done
echo "pointsman: there is no prebuilt addon for this machine ($platform), and to compile one Node's headers are missing" >&2
exit 1
