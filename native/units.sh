#!/bin/sh
# units.sh OUT FOLDER...: for each folder of native/ a file in OUT that includes all its .cc files, and prints the paths of these files.
# Compiled as one, a folder costs a third: most of a small file's time is reading the headers that all of them include.
# What files of one folder keep to themselves must therefore have different names.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
mkdir -p "$out"
for folder; do
  unit="$out/$folder.cc"
  {
    # The kernel's headers leave out what the C library's have declared before them; the C library's do not.
    echo '#include <netinet/in.h>'
    for file in "$here/$folder"/*.cc; do echo "#include \"$file\""; done
  } >"$unit.new"
  # One that is as it was keeps its time, by which make judges.
  if cmp -s "$unit.new" "$unit"; then rm "$unit.new"; else mv "$unit.new" "$unit"; fi
  echo "$unit"
done
