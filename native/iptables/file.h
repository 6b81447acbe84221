#pragma once

#include <string>

#include "netlink/result.h"

namespace pointsman::iptables {

/// A file's contents, or errno. Its descriptor goes to no program that another thread starts meanwhile, as that of std::ifstream does.
netlink::Result<std::string, int> read_file(const std::string& path);

}  // namespace pointsman::iptables
