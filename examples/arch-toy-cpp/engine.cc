// SPDX-License-Identifier: Apache-2.0

#include "engine.h"

#include <algorithm>
#include <utility>

namespace {

// The most that one request may ask for: docs/plugin-protocol.md, Limits.
constexpr size_t kPart = 1 << 20;           // bytes
constexpr size_t kAddresses = 1 << 16;      // of one ReadMemoryRequest
constexpr size_t kLargestFile = 256 << 20;  // bytes

}  // namespace

grpc::Status Engine::Serve(Stream* stream) {
  auto open = std::make_shared<Open>();
  open->stream = stream;
  {
    std::lock_guard<std::mutex> held(lock_);
    open_ = open;
  }
  stream->Write(pb::EngineRequest());  // the plugin is ready
  for (pb::EngineAnswer answer; stream->Read(&answer);) {
    std::lock_guard<std::mutex> held(open->lock);
    auto parts = open->waiting.find(answer.id());
    if (parts == open->waiting.end()) continue;
    parts->second.push_back(std::move(answer));
    open->came.notify_all();
  }
  std::lock_guard<std::mutex> held(open->lock);
  open->stream = nullptr;
  open->came.notify_all();
  return grpc::Status::OK;
}

// Ask returns the parts of the answer to a request.
std::vector<pb::EngineAnswer> Engine::Ask(uint64_t session, pb::EngineRequest request) {
  std::shared_ptr<Open> open;
  {
    std::lock_guard<std::mutex> held(lock_);
    open = open_;
  }
  if (session == 0 || open == nullptr) throw Refusal("this call has no engine");
  std::unique_lock<std::mutex> held(open->lock);
  const uint64_t id = ++open->last_id;
  request.set_id(id);
  request.set_session(session);
  auto& parts = open->waiting[id];
  std::vector<pb::EngineAnswer> answer;
  bool is_complete = open->stream != nullptr && !open->stream->Write(request);
  while (!is_complete && open->stream != nullptr) {
    open->came.wait(held, [&] { return !parts.empty() || open->stream == nullptr; });
    for (; !parts.empty() && !is_complete; parts.pop_front()) {
      is_complete = !parts.front().partial();
      answer.push_back(std::move(parts.front()));
    }
  }
  open->waiting.erase(id);
  if (answer.empty() || answer.back().partial()) throw Refusal("the engine is gone");
  if (answer.back().has_error()) throw Refusal(answer.back().error().message());
  return answer;
}

std::string Engine::ReadSection(uint64_t session, uint64_t object, const std::string& name) {
  pb::EngineRequest request;
  request.mutable_read_section()->set_object(object);
  request.mutable_read_section()->set_name(name);
  std::string data;
  for (const pb::EngineAnswer& part : Ask(session, std::move(request))) {
    data += part.read_section().data();
    if (data.size() > kLargestFile) throw Refusal("a section of more than " + std::to_string(kLargestFile) + " bytes");
  }
  return data;
}

std::vector<Engine::Part> Engine::ReadMany(uint64_t session, const std::vector<uint64_t>& addresses, uint32_t size) {
  if (size == 0 || size > kPart) throw Refusal("parts of " + std::to_string(size) + " bytes");
  const size_t most = std::min(kPart / size, kAddresses);
  std::vector<Part> parts;
  for (size_t at = 0; at < addresses.size(); at += most) {
    const size_t count = std::min(most, addresses.size() - at);
    pb::EngineRequest request;
    pb::ReadMemoryRequest* read = request.mutable_read_memory();
    read->set_address(addresses[at]);
    read->set_size(size);
    read->mutable_more()->Add(addresses.begin() + at + 1, addresses.begin() + at + count);
    const pb::EngineAnswer answer = Ask(session, std::move(request)).back();
    const std::string& data = answer.read_memory().data();
    for (size_t i = 0; i < count; i++) {
      Part part;
      if (data.size() / size > i) part = {data.substr(i * size, size), true};
      parts.push_back(std::move(part));
    }
    for (uint32_t missing : answer.read_memory().missing()) {
      if (missing < count) parts[at + missing].is_whole = false;
    }
  }
  return parts;
}
