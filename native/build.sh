#!/bin/sh
# Builds the addon. Headers beside the running Node or of the distribution are used (Node-API is stable across versions); elsewhere node-gyp
# finds its own.
set -eu
cd "$(dirname "$0")/.."
for prefix in "$(node -p 'path.dirname(path.dirname(process.execPath))')" /usr; do
  if [ -f "$prefix/include/node/node_api.h" ]; then
    exec npx --no-install node-gyp rebuild --jobs max --silent --nodedir="$prefix"
  fi
done
exec npx --no-install node-gyp rebuild --jobs max --silent
