#pragma once

#include <winsock2.h>
#include <objbase.h>

#include <cstdint>
#include <string>

/// The other end of what the stand-in DLLs are: a server on this machine, whose port HNS_STAND_IN_PORT names, holds the objects and answers for HNS.
///
///     request:  "CALL ID LENGTH\n" and so many bytes of text
///     answer:   "HRESULT LENGTH LENGTH\n" and so many bytes each of result and error record
namespace stand_in {

struct Answer {
  HRESULT result = E_FAIL;
  std::string text;
  std::string record;
};

inline std::string narrow(PCWSTR text) {
  if (text == nullptr) return {};
  const int length = WideCharToMultiByte(CP_UTF8, 0, text, -1, nullptr, 0, nullptr, nullptr);
  std::string narrowed(static_cast<std::size_t>(length), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text, -1, narrowed.data(), length, nullptr, nullptr);
  narrowed.resize(narrowed.size() - 1);
  return narrowed;
}

/// For the caller to free; null for none.
inline PWSTR widen(const std::string& text) {
  const int length = MultiByteToWideChar(CP_UTF8, 0, text.c_str(), -1, nullptr, 0);
  auto* const wide = static_cast<PWSTR>(CoTaskMemAlloc(static_cast<std::size_t>(length) * sizeof(wchar_t)));
  MultiByteToWideChar(CP_UTF8, 0, text.c_str(), -1, wide, length);
  return wide;
}

/// A connection, which is closed in the end.
class Connection {
 public:
  Connection() {
    char port[16] = "";
    GetEnvironmentVariableA("HNS_STAND_IN_PORT", port, sizeof port);
    WSADATA data;
    WSAStartup(MAKEWORD(2, 2), &data);
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
    open_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { closesocket(socket_); }

  bool open() const { return open_; }
  void shut() { shutdown(socket_, SD_BOTH); }

  bool send_all(const std::string& text) {
    for (std::size_t sent = 0; sent < text.size();) {
      const int count = send(socket_, text.data() + sent, static_cast<int>(text.size() - sent), 0);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }

  bool line(std::string& text) {
    text.clear();
    for (char read = 0; recv(socket_, &read, 1, 0) == 1; text += read) {
      if (read == '\n') return true;
    }
    return false;
  }

  bool bytes(std::string& text, std::size_t length) {
    text.resize(length);
    for (std::size_t at = 0; at < length;) {
      const int count = recv(socket_, text.data() + at, static_cast<int>(length - at), 0);
      if (count <= 0) return false;
      at += static_cast<std::size_t>(count);
    }
    return true;
  }

 private:
  SOCKET socket_ = INVALID_SOCKET;
  bool open_ = false;
};

inline std::string guid_text(REFGUID guid) {
  wchar_t text[40];
  StringFromGUID2(guid, text, 40);
  return narrow(text).substr(1, 36);
}

/// As long as nobody answers, HNS is a service that cannot be reached.
inline Answer ask(const std::string& call, const std::string& id, const std::string& text) {
  Answer answer;
  answer.result = HRESULT_FROM_WIN32(RPC_S_SERVER_UNAVAILABLE);
  Connection connection;
  std::string line;
  if (!connection.open() || !connection.send_all(call + " " + id + " " + std::to_string(text.size()) + "\n" + text) ||
      !connection.line(line)) {
    return answer;
  }
  char* end = nullptr;
  const auto result = static_cast<HRESULT>(std::strtoul(line.c_str(), &end, 10));
  const std::size_t length = std::strtoul(end, &end, 10);
  const std::size_t record = std::strtoul(end, &end, 10);
  if (connection.bytes(answer.text, length) && connection.bytes(answer.record, record)) answer.result = result;
  return answer;
}

}  // namespace stand_in
