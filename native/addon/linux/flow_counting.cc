#include "addon/linux/flow_counting.h"

#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "addon/argument.h"
#include "addon/linux/environment.h"
#include "addon/linux/simple_call.h"
#include "addon/values.h"
#include "conntrack/flow_counter.h"

namespace pointsman::addon {

namespace {

using conntrack::FlowCounter;
using conntrack::FlowSums;
using conntrack::Sum;

constexpr const char* kCount = "conntrack count";
constexpr const char* kTake = "conntrack take";

void append_sum(std::vector<double>& numbers, const Sum& sum) {
  for (const std::uint64_t number : {sum.flows, sum.request.packets, sum.request.bytes, sum.reply.packets, sum.reply.bytes})
    numbers.push_back(static_cast<double>(number));
}

Napi::Value sums_value(Napi::Env env, const FlowSums& sums) {
  Bytes ways;
  std::vector<double> numbers;
  for (const FlowSums::Row& row : sums.rows) {
    ways.insert(ways.end(), row.way.begin(), row.way.end());
    append_sum(numbers, row.sum);
  }
  std::vector<double> left_out;
  append_sum(left_out, sums.left_out);
  Napi::Object value = Napi::Object::New(env);
  value.Set("count", Napi::Number::New(env, static_cast<double>(sums.rows.size())));
  value.Set("ways", to_uint8_array(env, ways));
  value.Set("sums", numbers_value(env, numbers));
  value.Set("leftOut", numbers_value(env, left_out));
  value.Set("overruns", Napi::Number::New(env, sums.overruns));
  value.Set("living", Napi::Number::New(env, static_cast<double>(sums.living)));
  return value;
}

/// A counter and the thread that reads for it, until JavaScript stops it or the environment ends.
class RunningCounter {
 public:
  explicit RunningCounter(Napi::Env env, std::shared_ptr<FlowCounter> counter) : env_(env), counter_(std::move(counter)) {}

  /// Answers what stops it.
  static std::weak_ptr<RunningCounter> start(Napi::Env env, const std::shared_ptr<FlowCounter>& counter) {
    const auto running = std::make_shared<RunningCounter>(env, counter);
    running->self_ = running;
    napi_add_env_cleanup_hook(env, end, running.get());
    running->thread_ = std::thread([counter] { counter->run(); });
    return running;
  }

  void stop() {
    napi_remove_env_cleanup_hook(env_, end, this);
    finish();
  }

 private:
  static void end(void* running) { static_cast<RunningCounter*>(running)->finish(); }

  void finish() {
    counter_->stop();
    thread_.join();
    self_.reset();
  }

  napi_env env_;
  std::shared_ptr<FlowCounter> counter_;
  std::thread thread_;
  /// While it runs it owns itself.
  std::shared_ptr<RunningCounter> self_;
};

}  // namespace

Napi::Value conntrack_count(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  const std::uint32_t most = Argument(info[0], "most", misuse).integer(1, std::numeric_limits<std::int32_t>::max());
  const std::uint32_t buffer = Argument(info[1], "buffer", misuse).integer(0, std::numeric_limits<std::int32_t>::max());
  if (misuse.failed()) return misuse.raise();
  auto opened = FlowCounter::open(most, buffer);
  if (!opened.ok()) return throw_netlink(env, opened.error(), kCount);
  const std::shared_ptr<FlowCounter> counter = std::move(opened.value());
  const std::weak_ptr<RunningCounter> running = RunningCounter::start(env, counter);
  Napi::Object value = Napi::Object::New(env);
  const auto take = [counter](const Napi::CallbackInfo& call) {
    return SimpleCall<FlowSums>::start(
        call, kTake, sockets_of(call.Env()), [counter](netlink::Socket& socket) { return counter->take(socket); }, sums_value);
  };
  const auto stop = [running](const Napi::CallbackInfo&) {
    if (const auto held = running.lock()) held->stop();
  };
  value.Set("take", Napi::Function::New(env, take, "take"));
  value.Set("stop", Napi::Function::New(env, stop, "stop"));
  return value;
}

}  // namespace pointsman::addon
