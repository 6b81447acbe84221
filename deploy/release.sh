#!/bin/sh
# release.sh make FOLDER [--arch amd64,arm64] [--repository NAME] [--commit REVISION] [--v8-cache FILE] [--builder URI] [--url URL] [--homepage URL]: makes a release in
#   FOLDER, without Docker. docs/develop/release.md says what is in it.
# release.sh sign FOLDER --key FILE --confirmed SHA256SUMS: signs a release whose checksums another machine has got, too.
# release.sh pins: names Debian's packages of today in pins.json, for the next images.
# release.sh base [REFERENCE...]: writes the digest of every base image into the Dockerfile, and of the container that makes releases into its workflow.
# release.sh image REFERENCE: names the image in every kustomization, by its digest.
# release.sh sbom FOLDER: writes what the image of each architecture is made of, as CycloneDX, into FOLDER/linux_amd64 and FOLDER/linux_arm64.
#
# A REFERENCE is NAME:TAG@sha256:…, from whoever built or checked the image. Without the digest the registry is asked, by whichever of skopeo, crane and
# docker is installed. What is no digest is refused: none is ever made up.
set -eu
cd "$(dirname "$0")/.."

die() {
  echo "release.sh: $1" >&2
  exit 1
}

# Prints the digest that a reference carries, or that its registry answers.
digest_of() {
  case $1 in
    *@*) digest=${1#*@} ;;
    *)
      if command -v skopeo > /dev/null; then digest=$(skopeo inspect --format '{{.Digest}}' "docker://$1")
      elif command -v crane > /dev/null; then digest=$(crane digest "$1")
      elif command -v docker > /dev/null; then digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1")
      else die "$1: no digest given, and none of skopeo, crane and docker is there to ask for it"
      fi || die "$1: the registry did not tell its digest"
      ;;
  esac
  echo "$digest" | grep -qxE 'sha256:[0-9a-f]{64}' || die "$1: \"$digest\" is no sha256 digest"
  echo "$digest"
}

# edit FILE EXPRESSION: a sed script, in place.
edit() {
  sed -E "$2" "$1" > "$1.new"
  cat "$1.new" > "$1"
  rm "$1.new"
}

base() {
  workflow=.github/workflows/release.yml
  used=$(sed -nE 's/^(FROM|    container:) (--platform=[^ ]+ )?([^ @]+:[^ @]+)(@[^ ]+)?( .*)?$/\3/p' Dockerfile $workflow | sort -u)
  for reference in "$@"; do
    echo "$used" | grep -qxF "${reference%@*}" || die "$reference: nothing is built from ${reference%@*}"
  done
  for image in $used; do
    given=$image
    for reference in "$@"; do if [ "${reference%@*}" = "$image" ]; then given=$reference; fi; done
    digest=$(digest_of "$given")
    edit Dockerfile "s#^(FROM (--platform=[^ ]+ )?)$image(@[^ ]+)?( |\$)#\\1$image@$digest\\4#"
    edit $workflow "s#^(    container: )$image(@[^ ]+)?\$#\\1$image@$digest#"
    echo "$image@$digest"
  done
}

image() {
  name=${1%@*}
  echo "$name" | grep -qE ':[^/]+$' || die "$1: names no tag"
  digest=$(digest_of "$1")
  for file in deploy/base/kustomization.yaml deploy/overlays/*/kustomization.yaml; do
    edit "$file" "/^    digest: /d; s#^    newName: .*#    newName: ${name%:*}#; s#^    newTag: .*#    newTag: '${name##*:}'\\
    digest: $digest#"
  done
  for file in deploy/kubeadm-patches/*.yaml; do
    edit "$file" "s#^( +image: ).*#\\1$name@$digest#"
  done
  echo "$name@$digest"
}

sbom() {
  command -v docker > /dev/null || die 'there is no docker to build with'
  docker buildx build --platform linux/amd64,linux/arm64 --target sbom --output "$1" .
  for arch in amd64 arm64; do
    [ -s "$1/linux_$arch/pointsman.cdx.json" ] || die "the build has written no $1/linux_$arch/pointsman.cdx.json"
  done
}

case "${1:-} $#" in
  base\ *)
    shift
    base "$@"
    ;;
  'image 2') image "$2" ;;
  'sbom 2') sbom "$2" ;;
  make\ * | sign\ * | pins\ *) exec node deploy/release/main.mjs "$@" ;;
  *) die 'wants "make FOLDER", "sign FOLDER --key FILE --confirmed FILE", "pins", "base [REFERENCE...]", "image REFERENCE" or "sbom FOLDER"' ;;
esac
