#!/bin/sh
# arm64.sh: whether what runs on arm64 does there what it does here, in QEMU's emulation of that processor: the C++ tests, under UndefinedBehaviourSanitizer; the
# image, laid out; and in its Node what the addon computes. Kernels are not asked: QEMU does not translate most of what the addon says to one.
# Ends with 77 where tools are missing, after npm run build:test.
set -eu
cd "$(dirname "$0")/.."
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" > /dev/null || { echo "# no $tool"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

npm run -s build:arm64 > "$folder/log" || { cat "$folder/log"; exit 1; }
make -s -j2 -C native/test check ARCH=arm64
root=$folder/root
sh deploy/image-root.sh . "$root" arm64
[ -e "$root/pointsman/prebuilds/linux-arm64/pointsman.node" ]
node="qemu-aarch64 -L $root $root/usr/local/bin/node"
plan() { "$@" plan --config demo/config.yaml --manifests demo/manifests; }
plan $node "$root/pointsman/dist/main.js" > "$folder/there"
plan node dist/main.js | diff - "$folder/there"
qemu-aarch64 -L "$root" "$root/usr/sbin/iptables-legacy" --version
POINTSMAN_ADDON=$PWD/prebuilds/linux-arm64/pointsman.node POINTSMAN_TEST_NODE=$node node .build/test/run.js arm64
