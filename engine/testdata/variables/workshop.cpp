// A workshop of small tools: a compiler of formulas and its machine, a scene
// of bodies, a packer of bytes, a text index, a solver of puzzles and a
// transform of signals. Each thread works in one until it stops; the last one
// fails there.
#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cctype>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <pthread.h>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unistd.h>
#include <vector>

std::atomic<int> parked{0};
std::atomic<long> results{0};
int *volatile nowhere;

__attribute__((always_inline)) inline long stop_here(long with) {
  parked++;
  long number = 34;
  do asm volatile("syscall" : "+a"(number) : "D"(with) : "rcx", "r11", "memory");
  while (number != 0 && parked > 0);
  return with + number;
}
__attribute__((noinline)) long stop_away(long with, double also) {
  asm volatile("" ::: "rbx", "rbp", "r12", "r13", "r14", "r15");
  asm volatile("" ::: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
  asm volatile("" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
  asm volatile("" ::: "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return stop_here(with) + long(also);
}

// Formulas: text to tree to code.
namespace formula {
struct Node {
  char op;
  double number = 0;
  std::string name;
  std::unique_ptr<Node> left, right;
};
using Tree = std::unique_ptr<Node>;

struct Parser {
  const std::string &text;
  size_t at = 0;
  int depth = 0;

  char peek() const { return at < text.size() ? text[at] : 0; }
  Tree leaf() {
    if (peek() == '(') {
      at++;
      depth++;
      Tree inside = sum();
      at++;
      depth--;
      return inside;
    }
    auto node = std::make_unique<Node>();
    size_t start = at;
    if (std::isdigit(peek())) {
      while (std::isdigit(peek()) || peek() == '.') at++;
      node->op = '#';
      node->number = std::stod(text.substr(start, at - start));
    } else {
      while (std::isalnum(peek())) at++;
      node->op = '$';
      node->name = text.substr(start, at - start);
    }
    return node;
  }
  __attribute__((noinline)) Tree chain(const char *ops, Tree (Parser::*next)()) {
    Tree tree = (this->*next)();
    while (peek() && std::strchr(ops, peek())) {
      char op = text[at++];
      auto node = std::make_unique<Node>();
      node->op = op;
      node->left = std::move(tree);
      node->right = (this->*next)();
      tree = std::move(node);
    }
    return tree;
  }
  Tree product() { return chain("*/", &Parser::leaf); }
  Tree sum() { return chain("+-", &Parser::product); }
};

struct Scope {
  std::map<std::string, double> values;
  const Scope *outer = nullptr;
  int level = 0;
  std::optional<double> find(const std::string &name) const {
    for (const Scope *s = this; s; s = s->outer)
      if (auto it = s->values.find(name); it != s->values.end()) return it->second;
    return std::nullopt;
  }
};

struct Measure { double value; int nodes; };
__attribute__((noinline)) Measure evaluate(const Node &n, const Scope &scope, int depth, float scale, Measure so_far) {
  int nodes = so_far.nodes + 1;
  switch (n.op) {
  case '#': return {n.number * scale, nodes};
  case '$': {
    auto found = scope.find(n.name);
    if (!found) {
      size_t length = n.name.size();
      long r = stop_away(long(length) * depth, so_far.value);
      results += r;
      return {double(r), nodes + int(length)};
    }
    return {*found * scale, nodes};
  }
  }
  Measure a = evaluate(*n.left, scope, depth + 1, scale, {so_far.value + depth, nodes});
  Scope inner{{}, &scope, scope.level + 1};
  inner.values["it"] = a.value;
  Measure b = evaluate(*n.right, inner, depth + 1, scale * 1.5f, {a.value * 2, a.nodes});
  switch (n.op) {
  case '+': return {a.value + b.value, b.nodes};
  case '-': return {a.value - b.value, b.nodes};
  case '*': return {a.value * b.value, b.nodes};
  default: return {a.value / b.value, b.nodes + depth};
  }
}

__attribute__((noinline)) long calculate(const std::string &text, float scale) {
  Parser parser{text};
  Tree tree = parser.sum();
  Scope globals;
  globals.values["pi"] = 3.25;
  globals.values["x"] = -2;
  Measure m = evaluate(*tree, globals, 1, scale, {0.5, 0});
  return long(m.value) + m.nodes + long(parser.at);
}
}  // namespace formula

// Bodies that move.
struct Vec {
  double x, y, z;
  Vec operator+(const Vec &o) const { return {x + o.x, y + o.y, z + o.z}; }
  Vec operator-(const Vec &o) const { return {x - o.x, y - o.y, z - o.z}; }
  Vec operator*(double k) const { return {x * k, y * k, z * k}; }
  double dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
  double length() const { return std::sqrt(dot(*this)); }
};
struct Vec2 { float u, v; };
struct Body { Vec position, speed; double mass; int id; };
struct Ray { Vec from, towards; };
struct Hit { double distance; int id; };

__attribute__((noinline)) long step(std::vector<Body> &bodies, double dt, int rounds, int stop_at) {
  double energy = 0;
  Vec center{0, 0, 0};
  for (int round = 0; round < rounds; round++) {
    energy = 0;
    for (size_t i = 0; i < bodies.size(); i++) {
      Body &a = bodies[i];
      Vec pull{0, 0, 0};
      for (size_t j = 0; j < bodies.size(); j++) {
        if (i == j) continue;
        Vec apart = bodies[j].position - a.position;
        double square = apart.dot(apart) + 0.01;
        double force = bodies[j].mass / (square * std::sqrt(square));
        pull = pull + apart * force;
        if (round == stop_at && i == 2 && j == 1) results += stop_here(long(force * 1e6));
      }
      a.speed = a.speed + pull * dt;
      energy += a.mass * a.speed.dot(a.speed) / 2;
    }
    center = {0, 0, 0};
    for (Body &b : bodies) {
      b.position = b.position + b.speed * dt;
      center = center + b.position * b.mass;
    }
  }
  return long(energy * 1000) + long(center.length());
}

__attribute__((noinline)) std::optional<Hit> nearest(const std::vector<Body> &bodies, Ray ray, double limit) {
  std::optional<Hit> best;
  for (const Body &b : bodies) {
    Vec to = b.position - ray.from;
    double along = to.dot(ray.towards);
    double off = (to - ray.towards * along).length();
    if (along > 0 && off < b.mass && along < limit && (!best || along < best->distance)) best = Hit{along, b.id};
  }
  return best;
}
__attribute__((noinline)) Vec trace(const std::vector<Body> &bodies, Ray ray, int bounces, double strength, Vec2 pixel, uint8_t channel) {
  auto hit = nearest(bodies, ray, 100);
  Vec sky{0.5 + ray.towards.y, pixel.u * 2.0, channel / 255.0};
  if (bounces == 0) {
    long r = stop_away(channel, strength * 100);
    results += r;
    return sky * strength;
  }
  double left = strength * (hit ? 0.5 : 0.9);
  Ray next{ray.from + ray.towards * (hit ? hit->distance : 1.0), {ray.towards.z, ray.towards.x, -ray.towards.y}};
  Vec2 moved{pixel.u + 0.25f, pixel.v * 0.5f};
  Vec seen = trace(bodies, next, bounces - 1, left, moved, uint8_t(channel ^ 0x11));
  Vec mixed = seen * left + sky * (1 - left);
  return bounces & 1 ? mixed : mixed * moved.v;
}

// A packer: matches by a table of hashes.
struct Token {
  uint32_t length : 9;
  uint32_t distance : 15;
  uint32_t literal : 8;
};
struct Window { const uint8_t *start, *at, *end; };
__attribute__((noinline)) unsigned emit(std::vector<Token> &out, Token token, Window window, unsigned bits) {
  size_t left = size_t(window.end - window.at);
  unsigned cost = token.length ? 24u : 9u;
  uint8_t first = window.start[0];
  out.push_back(token);
  if (token.distance > 40) {
    long r = stop_away(long(left) * cost, bits);
    results += r + first;
  }
  return bits + cost + (left == 0) + (first & 1);
}
__attribute__((noinline)) long pack(const std::string &text, int effort) {
  std::vector<Token> out;
  std::array<int, 256> table;
  table.fill(-1);
  Window window{(const uint8_t *)text.data(), (const uint8_t *)text.data(), (const uint8_t *)text.data() + text.size()};
  unsigned bits = 0, tries = 0;
  while (window.at < window.end) {
    int position = int(window.at - window.start);
    unsigned hash = (window.at[0] * 33u + (window.at + 1 < window.end ? window.at[1] : 0)) & 255;
    int candidate = table[hash];
    table[hash] = position;
    int length = 0;
    if (candidate >= 0) {
      const uint8_t *a = window.start + candidate, *b = window.at;
      while (b + length < window.end && a[length] == b[length] && length < 255 && effort > 0) length++;
      tries++;
    }
    Token token{};
    if (length > 3) {
      token.length = unsigned(length);
      token.distance = unsigned(position - candidate);
    } else {
      token.literal = *window.at;
      length = 1;
    }
    bits = emit(out, token, window, bits);
    window.at += length;
  }
  return bits + tries + long(out.size());
}

// An index of words.
struct Entry { std::string word; std::list<int> lines; mutable int looked = 0; };
struct ByWord { bool operator()(const Entry &a, const Entry &b) const { return a.word < b.word; } };
class Index {
  std::set<Entry, ByWord> entries_;
  int line_ = 0;
  uint64_t seen_ = 0;

public:
  virtual ~Index() = default;
  virtual bool interesting(const std::string &word, char first, int line) const {
    int length = int(word.size());
    bool vowel = std::strchr("aeiou", first) != nullptr;
    return length > 2 && !vowel && line >= 0;
  }
  __attribute__((noinline)) int add(const std::string &line) {
    int added = 0;
    std::string word;
    for (char c : line + " ") {
      if (std::isalpha((unsigned char)c)) {
        word += char(std::tolower((unsigned char)c));
        continue;
      }
      char first = word.empty() ? '?' : word[0];
      bool wanted = interesting(word, first, line_);
      if (wanted) {
        auto [where, fresh] = entries_.insert(Entry{word, {}});
        const_cast<Entry &>(*where).lines.push_back(line_);
        added += fresh;
        seen_ = seen_ * 131 + uint8_t(first);
      }
      word.clear();
    }
    line_++;
    return added;
  }
};
struct Strict : Index {
  unsigned calls = 0;
  const char *label;
  explicit Strict(const char *l) : label(l) {}
  bool interesting(const std::string &word, char first, int line) const override {
    const_cast<Strict *>(this)->calls++;
    unsigned now = calls;
    if (now == 14) {
      long r = stop_away(first, line);
      results += r + label[0];
    }
    return Index::interesting(word, first, line) && now < 100;
  }
};
__attribute__((noinline)) long index_lines(Index &&index, const std::vector<std::string> &lines, short weight) {
  int total = 0;
  size_t longest = 0;
  for (const auto &line : lines) {
    int added = index.add(line);
    longest = std::max(longest, line.size());
    total += added * weight;
  }
  return total + long(longest);
}

// A puzzle: queens on a board, by bits.
struct Board { uint16_t columns, rising, falling; uint8_t row, size; };
__attribute__((noinline)) int place(Board b, int found, const char *path, unsigned long long visited) {
  if (b.row == b.size) {
    if (found == 3) {
      long r = stop_away(long(visited), path[0]);
      results += r;
    }
    return found + 1;
  }
  uint16_t all = uint16_t((1 << b.size) - 1);
  uint16_t open = uint16_t(all & ~(b.columns | b.rising | b.falling));
  char here[10];
  std::memset(here, '.', sizeof here);
  while (open) {
    uint16_t bit = uint16_t(open & -open);
    open = uint16_t(open ^ bit);
    here[b.row] = char('a' + __builtin_ctz(bit));
    Board next{uint16_t(b.columns | bit), uint16_t((b.rising | bit) << 1), uint16_t((b.falling | bit) >> 1), uint8_t(b.row + 1), b.size};
    found = place(next, found, here, visited * 3 + bit);
  }
  return found;
}

// A transform of signals.
using Complex = std::complex<double>;
__attribute__((noinline)) void transform(Complex *data, unsigned n, unsigned stride, int depth, double angle, Complex *scratch) {
  if (n == 1) {
    if (depth == 6 && stride == 64) results += stop_here(long(data[0].real() * 100));
    return;
  }
  unsigned half = n / 2;
  transform(data, half, stride * 2, depth + 1, angle * 2, scratch);
  transform(data + stride, half, stride * 2, depth + 1, angle * 2, scratch + 1);
  for (unsigned k = 0; k < half; k++) {
    Complex turn = std::polar(1.0, angle * k);
    Complex even = data[k * 2 * stride], odd = data[(k * 2 + 1) * stride] * turn;
    scratch[k] = even + odd;
    scratch[k + half] = even - odd;
  }
  for (unsigned k = 0; k < n; k++) data[k * stride] = scratch[k];
}
__attribute__((noinline)) long spectrum(int count, float pitch) {
  std::vector<Complex> data, scratch(256);
  for (int i = 0; i < count; i++) data.emplace_back(std::cos(i * pitch), i * 0.125);
  transform(data.data(), unsigned(count), 1, 0, -6.283185307179586 / count, scratch.data());
  double loudest = 0;
  for (const Complex &c : data) loudest = std::max(loudest, std::norm(c));
  return long(loudest) + count;
}

// A tree of keys, which are in order.
struct Leaf { uint32_t key; uint16_t weight; Leaf *left, *right; };
__attribute__((noinline)) long balance(const Leaf *leaf, uint32_t low, uint32_t high, int level) {
  uint32_t span = high - low, middle = low + span / 2;
  int below = level + 1;
  if (!leaf) return stop_away(span, middle) + below;
  const uint32_t &key = leaf->key;
  unsigned odd = low & 1;
  int32_t signed_high = -int32_t(high);
  char letter = char('a' + level % 26);
  bool heavy = level > 5;
  double portion = double(int(low)) * 0.25 + level;
  uint8_t rest = uint8_t(high % 10);
  assert(portion >= 0 && rest < 10);
  long right = balance(leaf->right, middle, high, below);
  results += low + level;
  return right + below + span + middle + odd + signed_high + letter + heavy + key;
}
__attribute__((noinline)) long weigh(int count) {
  std::vector<Leaf> leaves(static_cast<size_t>(count));
  for (int i = 0; i < count; i++) leaves[size_t(i)] = {uint32_t(i * 3), uint16_t(i), nullptr, i + 1 < count ? &leaves[size_t(i) + 1] : nullptr};
  long total = balance(leaves.data(), 10, 1u << 31, 0);
  return total + count;
}

// What fails: a list of work whose last item writes nowhere.
struct Job { int id; unsigned priority : 4, retry : 2; float cost; std::function<long(Job, long)> run; };
struct Ledger { long spent; short jobs; bool over; };
__attribute__((noinline)) Ledger work_off(std::vector<Job> &jobs, size_t at, Ledger ledger, float budget) {
  if (at == jobs.size()) return ledger;
  Job &job = jobs[at];
  float left = budget - job.cost;
  unsigned rank = job.priority * 4 + job.retry;
  long done = job.run(job, ledger.spent + rank);
  Ledger after = work_off(jobs, at + 1, {ledger.spent + done, short(ledger.jobs + 1), left < 0}, left);
  after.spent += rank;
  if (left < after.spent) after.jobs += short(rank);
  return after;
}
__attribute__((noinline)) long fail(Job job, long spent, long double precise, __int128 wide) {
  int id = job.id;
  float cost = job.cost * 2;
  unsigned mixed = job.priority ^ job.retry;
  double ratio = double(spent) / (id + 1);
  *nowhere = id + int(mixed);
  return long(cost) + long(ratio) + long(precise) + long(wide >> 60);
}

// What the threads do.
const std::string text = "the quick brown fox jumps over the lazy dog while the quick brown cat sleeps under the lazy tree";
const std::vector<std::string> lines = {"Call me Ishmael some years ago", "never mind how long precisely", "having little or no money in my purse"};
std::vector<Body> bodies, others;
const int tools = 8;

static void *work(void *argument) {
  long number = long(argument), r = 0;
  switch (number) {
  case 0: r = formula::calculate("1+2*(x-3*(pi+4/(7-(2*(unknown+1)))))", 1.25f); break;
  case 1: r = step(bodies, 0.01, 5, 3); break;
  case 2: r = long(trace(others, Ray{{0, 0, 0}, {0.6, 0.64, -0.48}}, 8, 0.95, {0.5f, 0.75f}, 0x42).x * 100); break;
  case 3: r = pack(text, 3); break;
  case 4: r = index_lines(Strict("words"), lines, 3); break;
  case 5: r = place(Board{0, 0, 0, 0, 8}, 0, "start", 1); break;
  case 6: r = spectrum(64, 0.7f); break;
  case 7: r = weigh(30); break;
  }
  results += r * number;
  return nullptr;
}

int main() {
  for (int i = 0; i < 5; i++) bodies.push_back({{i * 1.5, std::cos(i), -i * 0.5}, {0.1 * i, 0, 0.2}, 1.0 + i, 100 + i});
  others = bodies;
  for (long i = 0; i < tools; i++) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, work, (void *)i) != 0) return 1;
  }
  while (parked < tools) usleep(1000);
  usleep(20000);

  std::vector<Job> jobs;
  for (int i = 0; i < 6; i++) {
    jobs.push_back({i, unsigned(i * 3) & 15, unsigned(i) & 3, i * 2.5f, [i](Job job, long spent) {
      long share = spent / (i + 1);
      if (i == 5) return fail(std::move(job), share, 2.5L * i, (__int128(i) << 70) + share);
      return share + job.id;
    }});
  }
  Ledger end = work_off(jobs, 0, {7, 0, false}, 100.5f);
  return int(end.spent) + end.jobs;
}
