// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "arch.grpc.pb.h"

namespace pb = unwindd::arch::v2;

// A Refusal is the reason why a call has no answer: users read it.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An Engine is what the plugin asks of unwindd while a call is under way: the stream ServeEngine,
// which unwindd opens. Its methods are called from many threads.
class Engine {
 public:
  using Stream = grpc::ServerReaderWriter<pb::EngineRequest, pb::EngineAnswer>;

  // Serve answers as long as the stream is open. The newest stream counts.
  grpc::Status Serve(Stream* stream);

  // ReadSection returns a section of a code object; "" is the whole file. It throws Refusal.
  std::string ReadSection(uint64_t session, uint64_t object, const std::string& name);

  // A Part is what was read at an address; it is whole where all of it was there.
  struct Part {
    std::string data;
    bool is_whole = false;
  };

  // ReadMany reads size bytes at each address. It throws Refusal.
  std::vector<Part> ReadMany(uint64_t session, const std::vector<uint64_t>& addresses, uint32_t size);

 private:
  // An open stream, with the answers to each request that is under way.
  struct Open {
    std::mutex lock;
    std::condition_variable came;
    Stream* stream;  // nullptr: it ended
    uint64_t last_id = 0;
    std::map<uint64_t, std::deque<pb::EngineAnswer>> waiting;
  };

  std::vector<pb::EngineAnswer> Ask(uint64_t session, pb::EngineRequest request);

  std::mutex lock_;
  std::shared_ptr<Open> open_;
};
