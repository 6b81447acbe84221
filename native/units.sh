#!/bin/sh
# units.sh OUT FOLDER[+FOLDER...]...: for each word a file in OUT, named after its first folder, that includes all .cc files of these folders of native/, and
# prints the paths of these files.
# Compiled as one, ten folders cost half: most of a small file's time is reading the headers that all of them include, and making the same templates again.
# What files of one unit keep to themselves must therefore have different names.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
mkdir -p "$out"

for word; do
  unit="$out/${word%%+*}.cc"
  {
    # The kernel's headers leave out what the C library's have declared before them; the C library's do not.
    echo '#include <net/if.h>'
    echo '#include <netinet/in.h>'
    for folder in $(echo "$word" | tr + ' '); do
      for file in "$here/$folder"/*.cc; do echo "#include \"$file\""; done
    done
  } >"$unit.new"
  # One that is as it was keeps its time, by which make judges.
  if cmp -s "$unit.new" "$unit"; then rm "$unit.new"; else mv "$unit.new" "$unit"; fi
  echo "$unit"
done
