#!/bin/sh
# Builds the addon. Where the machine has Node's headers they are used (Node-API is stable across versions); elsewhere node-gyp finds its own.
set -eu
cd "$(dirname "$0")/.."
if [ -f /usr/include/node/node_api.h ]; then
  exec npx --no-install node-gyp rebuild --silent --nodedir=/usr
fi
exec npx --no-install node-gyp rebuild --silent
