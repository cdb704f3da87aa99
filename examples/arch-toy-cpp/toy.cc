// SPDX-License-Identifier: Apache-2.0
//
// An architecture plugin for a machine that does not exist: the twin of examples/arch-toy. The
// toy has 32-bit registers and waves of four lanes. The file of its programs says how much of the
// stack each function takes, and a word in memory says which lanes execute.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "arch.grpc.pb.h"
#include "engine.h"
#include "stdio.grpc.pb.h"

namespace {

enum Register : uint32_t { kLaneWord, kSP, kPC, kNoRegister = 0xffffffff };
constexpr uint32_t kLanes = 4;
constexpr uint8_t kCall = 0xca;  // the first byte of a call; every instruction has four
const std::string kMagic("TOYCODE\0", 8);

// Little is the number that bytes are, the lowest first.
uint64_t Little(const std::string& bytes) {
  uint64_t n = 0;
  for (size_t i = std::min<size_t>(bytes.size(), 8); i-- > 0;) n = n << 8 | static_cast<uint8_t>(bytes[i]);
  return n;
}

// Append adds an item to a column of byte strings.
void Append(pb::Blobs* column, const std::string& item) {
  column->add_lengths(item.size());
  column->mutable_data()->append(item);
}

// Cut returns the byte strings that a column has one after the other.
template <typename Lengths>
std::vector<std::string> Cut(const char* column, const Lengths& lengths, const std::string& data) {
  std::vector<std::string> items;
  size_t at = 0;
  for (uint32_t length : lengths) {
    if (length > data.size() - at) throw Refusal(std::string(column) + ": lengths of more bytes than it has");
    items.push_back(data.substr(at, length));
    at += length;
  }
  return items;
}

// A Function is an entry of a program's table.
struct Function {
  std::string name;
  uint32_t start, end;
  uint32_t frame;  // bytes
};

constexpr size_t kEntry = 28;  // bytes of an entry: 16 of the name, then three numbers

// ReadFunctions returns the table of a program, in the order of addresses.
std::vector<Function> ReadFunctions(const std::string& file) {
  const size_t head = kMagic.size() + 4;
  const size_t count = file.size() < head ? 0 : Little(file.substr(kMagic.size(), 4));
  if (file.size() < head || (file.size() - head) / kEntry != count || (file.size() - head) % kEntry != 0) {
    throw Refusal("the table of functions: a file of " + std::to_string(file.size()) + " bytes, expected " + std::to_string(kEntry) +
                  " for each of " + std::to_string(count) + " functions");
  }
  std::vector<Function> functions;
  for (size_t at = head; at < file.size(); at += kEntry) {
    auto number = [&](size_t offset) { return static_cast<uint32_t>(Little(file.substr(at + offset, 4))); };
    std::string name = file.substr(at, 16);
    name.erase(name.find_last_not_of('\0') + 1);
    functions.push_back({name, number(16), number(20), number(24)});
  }
  std::stable_sort(functions.begin(), functions.end(), [](const Function& a, const Function& b) { return a.start < b.start; });
  return functions;
}

void AddRule(pb::Rules* rules, uint64_t column, pb::RuleKind kind, int64_t offset) {
  rules->add_columns(column);
  rules->add_kinds(kind);
  rules->add_registers(0);
  rules->add_offsets(offset);
  Append(rules->mutable_expressions(), "");
}

// AddRow adds the row of a function: its return address is the last word of its frame.
void AddRow(pb::Rows* rows, const Function& f) {
  rows->add_starts(f.start);
  rows->add_ends(f.end);
  rows->add_cfa_kinds(pb::CFA_REGISTER);
  rows->add_cfa_registers(kSP);
  rows->add_cfa_offsets(f.frame);
  rows->add_cfa_spaces(0);
  Append(rows->mutable_cfa_expressions(), "");
  rows->add_rule_counts(1);
  AddRule(rows->mutable_rules(), kPC, pb::RULE_OFFSET, -4);
  rows->add_call_site_counts(0);
  rows->add_return_addresses(kPC);
  rows->add_signal_frames(false);
  rows->add_window_saves(false);
}

void AddRegisters(pb::Description* d, uint32_t first, const std::vector<std::string>& names, pb::RegisterClass kind) {
  pb::RegisterRange* range = d->add_registers();
  range->set_first(first);
  range->set_count(names.size());
  for (const std::string& name : names) range->add_names(name);
  range->set_bits(32);
  range->set_class_(kind);
}

using States = std::vector<std::map<uint32_t, std::string>>;

// ReadStates returns the registers of threads.
States ReadStates(const pb::RegistersColumn& column, int threads) {
  const std::vector<std::string> values = Cut("registers", column.lengths(), column.data());
  if (column.counts_size() != threads || column.numbers_size() != column.lengths_size()) {
    throw Refusal("registers: columns of different lengths");
  }
  States states;
  size_t at = 0;
  for (uint32_t count : column.counts()) {
    if (count > values.size() - at) throw Refusal("registers: counts of more registers than there are");
    auto& state = states.emplace_back();
    for (; count > 0; count--, at++) state[column.numbers(at)] = values[at];
  }
  return states;
}

uint64_t Number(const std::map<uint32_t, std::string>& state, uint32_t number) {
  auto found = state.find(number);
  return found == state.end() ? 0 : Little(found->second);
}

// Answer makes a call. What it throws is the call's error: the process goes on.
grpc::Status Answer(const std::function<void()>& call) {
  try {
    call();
    return grpc::Status::OK;
  } catch (const std::exception& e) {
    return grpc::Status(grpc::StatusCode::UNKNOWN, e.what());
  }
}

// Toy serves the calls in which the machine differs. What is not served, as Translate, is
// answered UNIMPLEMENTED by the base.
class Toy final : public pb::Architecture::Service {
  grpc::Status Describe(grpc::ServerContext*, const pb::DescribeRequest*, pb::Description* d) override {
    d->set_name("toy");
    d->set_version("1.0");
    d->set_address_bits(32);
    pb::Recogniser* programs = d->add_recognises();
    programs->set_magic(kMagic);
    programs->set_os_abi(-1);
    AddRegisters(d, kLaneWord, {"lanes", "sp"}, pb::CLASS_GENERAL);
    AddRegisters(d, kPC, {"pc"}, pb::CLASS_PROGRAM_COUNTER);
    d->set_pc(kPC);
    d->set_sp(kSP);
    d->set_fp(kNoRegister);
    d->set_return_address(kPC);
    AddRow(d->mutable_entry(), {"", 0, 0, 4});  // a call pushes the return address
    AddRule(d->mutable_default_rules(), kLaneWord, pb::RULE_SAME_VALUE, 0);
    AddRule(d->mutable_default_rules(), kSP, pb::RULE_VAL_OFFSET, 0);
    d->set_call_distance(1);
    d->set_max_instruction(4);
    d->set_stack_align(4);
    return grpc::Status::OK;
  }

  grpc::Status ServeEngine(grpc::ServerContext*, Engine::Stream* stream) override { return engine_.Serve(stream); }

  grpc::Status OpenObject(grpc::ServerContext*, const pb::OpenObjectRequest* request, grpc::ServerWriter<pb::OpenObjectPart>* parts) override {
    return Answer([&] {
      const std::vector<Function> table = ReadFunctions(engine_.ReadSection(request->session(), request->object(), ""));
      pb::OpenObjectPart head;
      pb::OpenObjectAnswer* answer = head.mutable_answer();
      answer->mutable_tables()->add_priorities(pb::BELOW_CFI);
      Append(answer->mutable_tables()->mutable_reasons(), "");
      answer->mutable_tables()->add_sections(0);
      pb::Functions* functions = answer->mutable_functions();
      for (const Function& f : table) {
        Append(functions->mutable_names(), f.name);
        functions->add_starts(f.start);
        functions->add_ends(f.end);
        functions->add_lanes(kLanes);
        functions->add_kinds(f.name == "kernel" ? pb::FUNCTION_KERNEL : pb::FUNCTION_ORDINARY);
        functions->add_default_rule_counts(0);
        functions->add_sections(0);
      }
      parts->Write(head);
      constexpr size_t kRows = 1 << 15;  // in a part
      for (size_t at = 0; at < table.size(); at += kRows) {
        pb::OpenObjectPart part;
        for (size_t i = at; i < std::min(at + kRows, table.size()); i++) AddRow(part.mutable_rows()->mutable_rows(), table[i]);
        parts->Write(part);
      }
    });
  }

  grpc::Status FrameRules(grpc::ServerContext*, const pb::FrameRulesRequest* request, pb::FrameRulesAnswer* answer) override {
    for (int i = 0; i < request->pcs_size(); i++) {
      answer->add_row_counts(0);
      Append(answer->mutable_reasons(), "the architecture does not read code");  // a program's table has all functions
      answer->add_trampolines(false);
      answer->add_complete(false);
      answer->add_gap_counts(0);
      answer->add_uncalled(false);
    }
    return grpc::Status::OK;
  }

  grpc::Status BindThreads(grpc::ServerContext*, const pb::BindThreadsRequest* request, pb::BindThreadsAnswer* answer) override {
    return Answer([&] {
      const States states = ReadStates(request->registers(), request->threads_size());
      const std::vector<Engine::Part> words = LaneWords(request->session(), states);
      for (size_t i = 0; i < states.size(); i++) {
        answer->add_pcs(Number(states[i], kPC));
        answer->add_lanes(kLanes);
        const bool is_known = words[i].is_whole;
        Append(answer->mutable_active_lanes(), is_known ? std::string(1, words[i].data[0] & 0x0f) : "");
        answer->add_active_unknown(!is_known);
        answer->add_width_counts(0);
        answer->add_return_address_masks(0);
        answer->add_map_counts(0);
        for (pb::Blobs* column : {answer->mutable_agents(), answer->mutable_groups(), answer->mutable_waves(), answer->mutable_problems()}) {
          Append(column, "");
        }
      }
    });
  }

  grpc::Status ClassifyReturn(grpc::ServerContext*, const pb::ClassifyReturnRequest* request, pb::ClassifyReturnAnswer* answer) override {
    return Answer([&] {
      const std::vector<std::string> code = Cut("code", request->code().lengths(), request->code().data());
      if (code.size() != static_cast<size_t>(request->pcs_size())) throw Refusal("code: columns of different lengths");
      for (const std::string& before : code) {
        const bool is_after = before.size() >= 4 && static_cast<uint8_t>(before[before.size() - 4]) == kCall;
        answer->add_classes(is_after ? pb::RETURN_AFTER_INDIRECT_CALL : pb::RETURN_NOT_AFTER_CALL);
        answer->add_targets(0);
      }
    });
  }

  // LaneWords returns the byte that says which lanes execute, of each thread; nothing is whole
  // where there is no engine.
  std::vector<Engine::Part> LaneWords(uint64_t session, const States& states) {
    std::vector<uint64_t> addresses;
    for (const auto& state : states) addresses.push_back(Number(state, kLaneWord));
    try {
      return engine_.ReadMany(session, addresses, 1);
    } catch (const Refusal&) {
      return std::vector<Engine::Part>(states.size());
    }
  }

  Engine engine_;
};

// Lifeline ends the process with unwindd's connection.
class Lifeline final : public plugin::GRPCStdio::CallbackService {
  struct Wait : grpc::ServerWriteReactor<plugin::Nothing> {
    void OnCancel() override { _exit(0); }
    void OnDone() override { _exit(0); }
  };

  grpc::ServerWriteReactor<plugin::Nothing>* StreamStdio(grpc::CallbackServerContext*, const plugin::Nothing*) override {
    return new Wait;
  }
};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Credentials are TLS with a certificate of this start, for nobody but who has unwindd's; plain
// where unwindd asks for none.
std::shared_ptr<grpc::ServerCredentials> Credentials() {
  const std::string identity = Environment("UNWINDD_PLUGIN_IDENTITY"), engine = Environment("PLUGIN_CLIENT_CERT");
  if (identity.empty() && engine.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = engine;
  options.pem_key_cert_pairs = {{identity, identity}};
  return grpc::SslServerCredentials(options);
}

}  // namespace

int main() {
  if (std::getenv("UNWINDD_ARCHITECTURE_PLUGIN") == nullptr) {
    std::cerr << "unwindd starts this when a target needs it: put it into a folder that --plugin-dir names\n";
    return 1;
  }
  const std::string path = Environment("PLUGIN_UNIX_SOCKET_DIR") + "/toy";
  Toy toy;
  Lifeline lifeline;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, Credentials());
  builder.SetMaxReceiveMessageSize(1 << 30);
  builder.RegisterService(&toy);
  builder.RegisterService(&lifeline);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "cannot listen on " << path << "\n";
    return 1;
  }
  std::cout << "1|2|unix|" << path << "|grpc" << std::endl;  // the handshake: protocol version 2
  server->Wait();
}
