#!/bin/sh
# system.sh arm64 FOLDER: gathers in FOLDER what the image for another architecture than this machine's is made from: Debian's packages, of the release that
# apt is set to here, and Node. Nothing is installed and nothing of it is run. A FOLDER that is there already stays as it is.
set -eu
arch=$1
folder=$2
# The Node of the Dockerfile, and the sha512 of its package in the npm registry.
node=24.21.0
sum=1692513c4cf63afbd32df8c83a5346158f492cf30a825e66f9de2819804b836e242759a6bcdd5997f1cf2601781c3689e752127afd65d5c459fc333e91e5d6e6
[ "$arch" = arm64 ] || { echo "system.sh: no image is made for \"$arch\" on this machine" >&2; exit 1; }
[ ! -e "$folder" ] || exit 0

mkdir -p "$folder.new"
made=$(cd "$folder.new" && pwd)
trap 'rm -rf "$made"' EXIT
apt=$made/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$made/usr/lib" "$made/usr/sbin" "$made/usr/bin" "$made/usr/local/bin" "$made/var/lib/dpkg/info"
for each in bin sbin lib; do ln -s "usr/$each" "$made/$each"; done
: > "$apt/status"

# apt as if on an empty machine of that architecture.
elsewhere() {
  apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root -o Dir::State="$apt" -o Dir::State::status="$apt/status" \
    -o Dir::Cache="$apt" "$@"
}
elsewhere update
elsewhere install -y --download-only --no-install-recommends coreutils iptables kmod libstdc++6
for archive in "$apt"/archives/*.deb; do
  # Debian's folders /bin, /sbin and /lib are links, of which not all packages know.
  dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$made"
  name=$(dpkg-deb -f "$archive" Package):$(dpkg-deb -f "$archive" Architecture)
  dpkg-deb --fsys-tarfile "$archive" | tar -t | sed 's#^\.##; s#/$##' > "$made/var/lib/dpkg/info/$name.list"
  { echo 'Status: install ok installed'; dpkg-deb -f "$archive"; echo; } >> "$made/var/lib/dpkg/status"
done

package=$(cd "$apt" && npm pack --silent "node-linux-$arch@$node")
echo "$sum  $apt/$package" | sha512sum --check --quiet
tar -xzf "$apt/$package" -C "$apt" package/bin/node
mv "$apt/package/bin/node" "$made/usr/local/bin/node"
echo "$node" > "$made/node-version"
rm -r "$apt"
mv "$made" "$folder"
