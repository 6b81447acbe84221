#!/bin/sh
# units.sh OUT FOLDER...: for each folder of native/ a file in OUT that includes all its .cc files, and prints the paths of these files.
# Compiled as one, a folder costs a third: most of a small file's time is reading the headers that all of them include.
# What files of one folder keep to themselves must therefore have different names. In addon/linux files of different subsystems share names: what may be
# compiled together there is a group, and a file of no group is compiled alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
mkdir -p "$out"

# unit NAME FILE...
unit() {
  unit="$out/$1.cc"
  shift
  {
    # The kernel's headers leave out what the C library's have declared before them; the C library's do not.
    echo '#include <netinet/in.h>'
    for file; do echo "#include \"$file\""; done
  } >"$unit.new"
  # One that is as it was keeps its time, by which make judges.
  if cmp -s "$unit.new" "$unit"; then rm "$unit.new"; else mv "$unit.new" "$unit"; fi
  echo "$unit"
}

group_of() {
  case $1 in
    nftables | transaction_argument | json_argument | trace | watch) echo nftables ;;
    iptables | iptables_argument | ipvs) echo iptables ;;
    conntrack | flow_counting | timeouts | accounting | peer | route | sysctl) echo conntrack ;;
    ipset | probe | memory | platform | polled_subject) echo ipset ;;
    *) echo "$1" ;;
  esac
}

for folder; do
  if [ "$folder" != addon/linux ]; then
    unit "$folder" "$here/$folder"/*.cc
    continue
  fi
  for file in "$here/$folder"/*.cc; do group_of "$(basename "$file" .cc)"; done | sort -u | while read -r group; do
    set --
    for file in "$here/$folder"/*.cc; do
      [ "$(group_of "$(basename "$file" .cc)")" != "$group" ] || set -- "$@" "$file"
    done
    unit "linux_$group" "$@"
  done
done
