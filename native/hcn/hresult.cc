#include <algorithm>
#include <array>

#include "hcn/text.h"

namespace pointsman::hcn {

namespace {

struct Name {
  std::uint32_t hresult;
  const char* name;
  const char* meaning;
};

/// The codes of winerror.h that HNS, its DLLs and the service manager are known to answer.
constexpr std::array kNames{
    Name{0x80004001, "E_NOTIMPL", "not implemented"},
    Name{0x80004002, "E_NOINTERFACE", "no such interface"},
    Name{0x80004005, "E_FAIL", "unspecified failure"},
    Name{0x8000FFFF, "E_UNEXPECTED", "unexpected failure"},
    Name{0x80070002, "ERROR_FILE_NOT_FOUND", "there is no such file"},
    Name{0x80070005, "E_ACCESSDENIED", "access is denied"},
    Name{0x80070006, "E_HANDLE", "invalid handle"},
    Name{0x8007000D, "ERROR_INVALID_DATA", "the data is invalid"},
    Name{0x8007000E, "E_OUTOFMEMORY", "out of memory"},
    Name{0x80070015, "ERROR_NOT_READY", "the device is not ready"},
    Name{0x80070032, "ERROR_NOT_SUPPORTED", "the request is not supported"},
    Name{0x80070057, "E_INVALIDARG", "an argument is invalid"},
    Name{0x8007007E, "ERROR_MOD_NOT_FOUND", "there is no such module"},
    Name{0x8007007F, "ERROR_PROC_NOT_FOUND", "the module has no such function"},
    Name{0x800700AA, "ERROR_BUSY", "it is in use"},
    Name{0x800700B7, "ERROR_ALREADY_EXISTS", "it exists already"},
    Name{0x80070102, "WAIT_TIMEOUT", "a wait took too long"},
    Name{0x80070426, "ERROR_SERVICE_NOT_ACTIVE", "the service has not been started"},
    Name{0x80070427, "ERROR_FAILED_SERVICE_CONTROLLER_CONNECT", "the service manager did not start this process"},
    Name{0x8007045B, "ERROR_SHUTDOWN_IN_PROGRESS", "the system is shutting down"},
    Name{0x80070490, "ERROR_NOT_FOUND", "there is no such element"},
    Name{0x800705AA, "ERROR_NO_SYSTEM_RESOURCES", "the system lacks resources"},
    Name{0x800705B4, "ERROR_TIMEOUT", "it took too long"},
    Name{0x800706B5, "RPC_S_UNKNOWN_IF", "the service does not know the interface"},
    Name{0x800706BA, "RPC_S_SERVER_UNAVAILABLE", "the service cannot be reached"},
    Name{0x800706BB, "RPC_S_SERVER_TOO_BUSY", "the service is too busy"},
    Name{0x800706BE, "RPC_S_CALL_FAILED", "the call of the service failed"},
    Name{0x800706BF, "RPC_S_CALL_FAILED_DNE", "the call of the service did not begin"},
    Name{0x800706D9, "EPT_S_NOT_REGISTERED", "the service has no endpoint yet"},
    Name{0x803B0001, "HCN_E_NETWORK_NOT_FOUND", "there is no such network"},
    Name{0x803B0002, "HCN_E_ENDPOINT_NOT_FOUND", "there is no such endpoint"},
    Name{0x803B0003, "HCN_E_LAYER_NOT_FOUND", "the network's layer was not found"},
    Name{0x803B0004, "HCN_E_SWITCH_NOT_FOUND", "the virtual switch was not found"},
    Name{0x803B0005, "HCN_E_SUBNET_NOT_FOUND", "the network has no subnet for the endpoint"},
    Name{0x803B0006, "HCN_E_ADAPTER_NOT_FOUND", "an adapter was not found"},
    Name{0x803B0007, "HCN_E_PORT_NOT_FOUND", "the port of the switch was not found"},
    Name{0x803B0008, "HCN_E_POLICY_NOT_FOUND", "a policy was not found"},
    Name{0x803B0009, "HCN_E_VFP_PORTSETTING_NOT_FOUND", "a setting of the virtual filter was not found"},
    Name{0x803B000A, "HCN_E_INVALID_NETWORK", "the network's settings are invalid or incomplete"},
    Name{0x803B000B, "HCN_E_INVALID_NETWORK_TYPE", "there is no such type of networks"},
    Name{0x803B000C, "HCN_E_INVALID_ENDPOINT", "the endpoint's settings are invalid or incomplete"},
    Name{0x803B000D, "HCN_E_INVALID_POLICY", "the policy's settings are invalid or incomplete"},
    Name{0x803B000E, "HCN_E_INVALID_POLICY_TYPE", "there is no such type of policies"},
    Name{0x803B000F, "HCN_E_INVALID_REMOTE_ENDPOINT_OPERATION", "not possible for a remote endpoint"},
    Name{0x803B0010, "HCN_E_NETWORK_ALREADY_EXISTS", "there is a network of this name"},
    Name{0x803B0011, "HCN_E_LAYER_ALREADY_EXISTS", "there is a layer of this name"},
    Name{0x803B0012, "HCN_E_POLICY_ALREADY_EXISTS", "the object has the policy"},
    Name{0x803B0013, "HCN_E_PORT_ALREADY_EXISTS", "the port exists already"},
    Name{0x803B0014, "HCN_E_ENDPOINT_ALREADY_ATTACHED", "the endpoint is attached already"},
    Name{0x803B0015, "HCN_E_REQUEST_UNSUPPORTED", "the request is not supported"},
    Name{0x803B0016, "HCN_E_MAPPING_NOT_SUPPORTED", "the network knows no mapping of ports"},
    Name{0x803B0017, "HCN_E_DEGRADED_OPERATION", "the object is degraded"},
    Name{0x803B0018, "HCN_E_SHARED_SWITCH_MODIFICATION", "several networks share the switch"},
    Name{0x803B0019, "HCN_E_GUID_CONVERSION_FAILURE", "a parameter is no GUID"},
    Name{0x803B001A, "HCN_E_REGKEY_FAILURE", "a key of the registry failed"},
    Name{0x803B001B, "HCN_E_INVALID_JSON", "the document is no JSON"},
    Name{0x803B001C, "HCN_E_INVALID_JSON_REFERENCE", "the document's reference is invalid"},
    Name{0x803B001D, "HCN_E_ENDPOINT_SHARING_DISABLED", "endpoints are not shared"},
    Name{0x803B001E, "HCN_E_INVALID_IP", "the address is invalid or of no subnet of the network"},
    Name{0x803B001F, "HCN_E_SWITCH_EXTENSION_NOT_FOUND", "the switch has no such extension"},
    Name{0x803B0020, "HCN_E_MANAGER_STOPPED", "the service is stopping"},
    Name{0x803B002A, "HCN_E_ICS_DISABLED", "the service SharedAccess is disabled"},
    Name{0x803B002B, "HCN_E_ENDPOINT_NAMESPACE_ALREADY_EXISTS", "the endpoint is in a namespace already"},
    Name{0x803B002C, "HCN_E_ENTITY_HAS_REFERENCES", "something refers to it"},
    Name{0x803B002D, "HCN_E_INVALID_INTERNAL_PORT", "there must be an internal port other than 0"},
    Name{0x803B002E, "HCN_E_NAMESPACE_ATTACH_FAILED", "the namespace could not be attached"},
    Name{0x803B002F, "HCN_E_ADDR_INVALID_OR_RESERVED", "an address is invalid or reserved"},
    Name{0x803B0030, "HCN_E_INVALID_PREFIX", "the prefix is invalid"},
    Name{0x803B0031, "HCN_E_OBJECT_USED_AFTER_UNLOAD", "the object was torn down"},
    Name{0x803B0032, "HCN_E_INVALID_SUBNET", "the subnet's settings are invalid or incomplete"},
    Name{0x803B0033, "HCN_E_INVALID_IP_SUBNET", "the address subnet's settings are invalid or incomplete"},
    Name{0x803B0034, "HCN_E_ENDPOINT_NOT_ATTACHED", "the endpoint must be attached"},
    Name{0x803B0035, "HCN_E_ENDPOINT_NOT_LOCAL", "the endpoint must be local"},
    Name{0x803B0037, "HCN_E_VFP_NOT_ALLOWED", "there is no virtual filter for a network of this type"},
};

const Name* find(std::uint32_t hresult) {
  const auto found = std::find_if(kNames.begin(), kNames.end(), [hresult](const Name& each) { return each.hresult == hresult; });
  return found == kNames.end() ? nullptr : &*found;
}

}  // namespace

std::string hresult_name(std::uint32_t hresult) {
  if (const Name* const known = find(hresult)) return known->name;
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[(hresult >> shift) & 0xf];
  return text;
}

std::string_view hresult_meaning(std::uint32_t hresult) {
  const Name* const known = find(hresult);
  return known == nullptr ? "" : known->meaning;
}

}  // namespace pointsman::hcn
