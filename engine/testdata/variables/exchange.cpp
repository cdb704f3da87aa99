// An exchange: orders are read from text, matched in books, settled, and
// priced. Each thread stops in another part of it; main waits for them all.
// Variables are parameters in registers, structs by value, floats, bitfields,
// arrays, captures of lambdas, what inlined calls made of them, what is used
// again only after a call, and what only assertions use (-DNDEBUG).
#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <pthread.h>
#include <string>
#include <string_view>
#include <tuple>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

std::atomic<int> parked{0};
std::atomic<long> results{0};

// Waits for ever, in the function that it is inlined into: in pause, which the
// kernel leaves only for a signal.
__attribute__((always_inline)) inline long stop_here(long with) {
  parked++;
  long number = 34;
  do asm volatile("syscall" : "+a"(number) : "D"(with) : "rcx", "r11", "memory");
  while (number != 0 && parked > 0);
  return with + number;
}
// Waits in a function that saves every register that calls preserve, and that
// changes the others before, as a function of a library would.
__attribute__((noinline)) long stop_away(long with) {
  asm volatile("" ::: "rbx", "rbp", "r12", "r13", "r14", "r15");
  asm volatile("" ::: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
  asm volatile("" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
  asm volatile("" ::: "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return stop_here(with) + 1;
}
// Waits in a function that leaves most registers alone, which the compiler
// knows (-fipa-ra): a caller may keep values there.
__attribute__((noinline)) long stop_lightly(long with) { return stop_here(with) + 2; }

enum class Side : uint8_t { buy, sell };
enum Venue { lit = 1, dark = 7, auction = -3 };

struct Flags {
  unsigned hidden : 1;
  unsigned tier : 3;
  int skew : 5;
  unsigned venue : 9;
  bool firm : 1;
};
struct Price {
  int64_t ticks;
  int32_t scale;
  double value() const { return double(ticks) / scale; }
  Price plus(int64_t t) const { return {ticks + t, scale}; }
};
struct Point { float x, y; };
struct Quote { double bid, ask; };
struct Pair { uint32_t first; float second; };
struct Order {
  uint64_t id;
  Side side;
  Flags flags;
  Price price;
  uint32_t quantity;
  std::string owner;
};
struct Fill { uint64_t maker, taker; Price price; uint32_t quantity; };
using Event = std::variant<Order, Fill, std::string>;

// Reading orders.
struct Reader {
  std::string_view text;
  size_t at = 0;
  unsigned lines = 0;

  std::string_view word() {
    while (at < text.size() && text[at] == ' ') at++;
    size_t start = at;
    while (at < text.size() && text[at] != ' ' && text[at] != '\n') at++;
    return text.substr(start, at - start);
  }
  std::optional<int64_t> number() {
    std::string_view w = word();
    if (w.empty()) return std::nullopt;
    int64_t value = 0;
    int sign = 1;
    size_t i = 0;
    if (w[0] == '-') { sign = -1; i = 1; }
    for (; i < w.size(); i++) {
      char c = w[i];
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    return value * sign;
  }
  template <typename Sink> int each(Sink sink) {
    int count = 0;
    while (at < text.size()) {
      size_t began = at;
      std::string_view name = word();
      auto id = number(), ticks = number(), quantity = number();
      if (id && ticks && quantity) {
        count += sink(name, uint64_t(*id), *ticks, uint32_t(*quantity), began);
      }
      if (at < text.size()) at++;
      lines++;
    }
    return count;
  }
};

__attribute__((noinline)) long checksum(const char *data, size_t size, unsigned seed, int stop_at) {
  uint32_t a = seed & 0xffff, b = seed >> 16;
  long turned = 0;
  for (size_t i = 0; i < size; i++) {
    uint8_t byte = uint8_t(data[i]);
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
    if (int(i) == stop_at) turned += stop_here(long(a) << 8);
  }
  return turned + ((long(b) << 16) | a);
}

// Books.
struct Book {
  std::map<int64_t, std::deque<Order>> bids, asks;
  std::vector<Fill> fills;
  std::array<uint32_t, 8> depth{};

  __attribute__((noinline)) uint32_t match(Order &incoming, int level, const std::function<long(const Fill &)> &report) {
    auto &against = incoming.side == Side::buy ? asks : bids;
    uint32_t wanted = incoming.quantity, done = 0;
    double paid = 0, worst = incoming.price.value();
    for (auto it = against.begin(); it != against.end() && done < wanted;) {
      auto &[ticks, queue] = *it;
      int64_t distance = ticks - incoming.price.ticks;
      if (incoming.side == Side::buy ? distance > 0 : distance < 0) break;
      Order &resting = queue.front();
      uint32_t take = std::min(resting.quantity, wanted - done);
      Fill fill{resting.id, incoming.id, resting.price, take};
      paid += take * resting.price.value();
      done += take;
      depth[level & 7] += take;
      long answer = report(fill);
      fills.push_back(fill);
      resting.quantity -= take;
      results += answer + distance;
      if (resting.quantity == 0) queue.pop_front();
      if (queue.empty()) it = against.erase(it); else ++it;
    }
    incoming.quantity = wanted - done;
    if (paid > worst * wanted) results++;
    return done;
  }
};

__attribute__((noinline)) long notice(Price price, Flags flags, Point where, uint32_t quantity, const char *who) {
  Price next = price.plus(quantity);
  float slope = where.x / (where.y + 1);
  unsigned tier = flags.tier + 1u;
  int skew = flags.skew * 2;
  long r = stop_away(next.ticks);
  results += long(slope * 100) + tier + skew + who[0] + next.scale;
  return r + next.ticks + flags.venue;
}

__attribute__((noinline)) long deliver(const Fill &fill, Quote quote, Pair pair, int retries) {
  double middle = (quote.bid + quote.ask) / 2, spread = quote.ask - quote.bid;
  uint32_t part = pair.first / 2;
  float weight = pair.second * 1.5f;
  Flags flags{1, 5, -7, 311, true};
  flags.tier = retries & 7;
  char name[12] = "settlement";
  name[0] = char('S' + retries);
  long r = notice(fill.price, flags, Point{weight, float(spread)}, fill.quantity + part, name);
  results += long(middle * 10) + long(weight) + part + name[3];
  return retries > 0 ? r + retries : r - flags.skew;
}

__attribute__((noinline)) long trade(std::string_view text, int depth) {
  Book book;
  int turns = 0;
  float fee = 0.25f;
  long last = 0;
  Reader reader{text};
  auto report = [&](const Fill &f) {
    double value = f.price.value();
    turns++;
    if (turns < 4) return long(value);
    Quote quote{value - 0.5, value + 0.5};
    long reached = deliver(f, quote, Pair{f.quantity * 3, fee}, turns);
    last = reached;
    return reached + turns;
  };
  int count = reader.each([&](std::string_view name, uint64_t id, int64_t ticks, uint32_t quantity, size_t began) {
    Side side = name == "buy" ? Side::buy : Side::sell;
    Order order{id, side, Flags{0, unsigned(id) & 7, int(id) % 11, 17, true}, Price{ticks, 100}, quantity, std::string(name)};
    uint32_t done = book.match(order, int(began), report);
    if (order.quantity > 0) {
      auto &side_of = side == Side::buy ? book.bids : book.asks;
      side_of[ticks].push_back(order);
    }
    return int(done);
  });
  results += count + reader.lines + last;
  return count + depth + long(fee * 4);
}

// Recursion with values that live across it.
__attribute__((noinline)) double price_tree(int depth, double up, double down, float rate, unsigned path, long base) {
  unsigned left = path * 2 + 1, right = left ^ 5;
  double discount = 1.0 / (1.0 + rate);
  long mark = base + depth * 7;
  int64_t squares[3] = {depth, int64_t(path), mark};
  if (depth == 0) {
    long r = stop_away(mark + squares[1]);
    results += r;
    return up * discount;
  }
  double a = depth & 1 ? price_tree(depth - 1, up * 1.1, down, rate, left, mark) : up;
  double b = depth & 1 ? down : price_tree(depth - 1, up, down * 0.9, rate * 0.99f, right, mark + squares[0]);
  results += left + right + mark + squares[2];
  return (a + b * up) * discount + down * path;
}

__attribute__((noinline)) int visit(const std::vector<Event> &events, size_t at, int depth, int total, char tag) {
  if (at >= events.size()) {
    int64_t end = stop_away(int64_t(at) * total);
    return int(end) + tag;
  }
  int before = total;
  struct Visitor {
    const std::vector<Event> &events;
    size_t at;
    int depth, &total;
    char tag;
    int operator()(const Order &o) const {
      unsigned venue = o.flags.venue;
      int64_t ticks = o.price.ticks;
      total += int(ticks);
      int r = visit(events, at + 1, depth + 1, total, char(tag + 1));
      return r + int(venue) + int(ticks);
    }
    int operator()(const Fill &f) const {
      double value = f.price.value() * f.quantity;
      uint32_t quantity = f.quantity;
      total += int(quantity);
      int r = visit(events, at + 1, depth + 2, total, char(tag + 2));
      return r + int(value) + int(quantity);
    }
    int operator()(const std::string &s) const {
      size_t size = s.size();
      const char *text = s.c_str();
      total += int(size);
      int r = visit(events, at + 1, depth + 3, total, char(tag + 3));
      return r + int(size) + text[0];
    }
  };
  int r = std::visit(Visitor{events, at, depth, total, tag}, events[at]);
  results += before + depth;
  return r + before * depth;
}

// Sorting with a comparator that stops.
__attribute__((noinline)) long ranked(std::vector<std::pair<double, int>> rows, double pivot, int limit) {
  int compared = 0;
  double spread = 0;
  std::sort(rows.begin(), rows.end(), [&](const auto &a, const auto &b) {
    double da = std::fabs(a.first - pivot), db = std::fabs(b.first - pivot);
    spread += da - db;
    if (++compared == limit) {
      long r = stop_here(long(da * 1000) + a.second);
      results += r + b.second;
    }
    return da < db || (da == db && a.second < b.second);
  });
  return compared + long(spread) + rows[0].second;
}

// Matrices: loops whose variables were promoted to registers.
template <int N> struct Matrix {
  std::array<double, N * N> cell{};
  double &at(int r, int c) { return cell[r * N + c]; }
  double at(int r, int c) const { return cell[r * N + c]; }
};
template <int N> __attribute__((noinline)) double determinant(Matrix<N> m, int stop_row, short power) {
  double product = 1;
  int swaps = 0;
  for (int k = 0; k < N; k++) {
    int best = k;
    for (int r = k + 1; r < N; r++)
      if (std::fabs(m.at(r, k)) > std::fabs(m.at(best, k))) best = r;
    if (best != k) {
      swaps++;
      for (int c = 0; c < N; c++) std::swap(m.at(k, c), m.at(best, c));
    }
    double pivot = m.at(k, k);
    product *= pivot;
    for (int r = k + 1; r < N; r++) {
      double factor = m.at(r, k) / pivot;
      for (int c = k; c < N; c++) m.at(r, c) -= factor * m.at(k, c);
      if (r == stop_row) results += stop_here(r * 100 + swaps);
    }
  }
  return swaps & 1 ? -product : product * power;
}

// A table of callbacks, called through type-erased functions.
struct Account {
  std::string name;
  double balance;
  uint16_t branch;
  int8_t grade;
  bool open;
};
__attribute__((noinline)) long settle(std::unordered_map<std::string, Account> &accounts, std::vector<std::function<double(Account &, int)>> &steps,
                                      unsigned round, uint8_t mask) {
  double sum = 0, peak = -1e9;
  long index = 0;
  std::vector<std::string> names;
  for (auto &entry : accounts) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  for (const std::string &name : names) {
    Account &account = accounts.at(name);
    for (size_t i = 0; i < steps.size(); i++) {
      double before = account.balance;
      double change = steps[i](account, int(index));
      sum += change;
      peak = std::max(peak, before + change);
      index += (mask >> (i & 7)) & 1;
    }
  }
  return long(sum) + long(peak) + index + round;
}

__attribute__((noinline)) long overnight(int threads, unsigned rounds) {
  std::unordered_map<std::string, Account> accounts;
  for (int i = 0; i < 5; i++) {
    std::string name = "account-" + std::to_string(i);
    accounts[name] = Account{name, 1000.5 * i, uint16_t(300 + i), int8_t(-i), i != 3};
  }
  double rate = 0.015 * threads, taken = 0;
  std::shared_ptr<int> shared = std::make_shared<int>(threads);
  std::vector<std::function<double(Account &, int)>> steps = {
      [rate](Account &a, int) { double interest = a.balance * rate; a.balance += interest; return interest; },
      [&taken, shared](Account &a, int index) {
        float fee = a.open ? 1.5f : 0.0f;
        int8_t grade = a.grade;
        uint16_t branch = a.branch;
        if (index > 3) {
          long r = stop_lightly(branch + index);
          results += r * grade;
        }
        taken += fee + *shared;
        return double(-fee * grade);
      },
  };
  long total = 0;
  for (unsigned r = 0; r < rounds; r++) {
    long got = settle(accounts, steps, r, 0x5b);
    total = total * 31 + got;
  }
  return total + long(taken);
}

// A hash of words, by value and by reference, in an unrolled loop.
struct Word { uint32_t a, b; };
struct Digest { uint64_t low; uint32_t high; uint8_t rounds; };
__attribute__((noinline)) Digest absorb(Digest d, Word w, const uint8_t *key, int left) {
  uint64_t mixed = (d.low ^ w.a) * 0x9e3779b97f4a7c15u;
  uint32_t carry = uint32_t(mixed >> 40) + w.b;
  uint8_t rounds = uint8_t(d.rounds + key[left & 3]);
  if (left == 0) {
    long r = stop_here(carry);
    return {mixed + r, carry, rounds};
  }
  Digest inner = absorb({mixed, d.high + carry, rounds}, {w.b, w.a + uint32_t(left)}, key, left - 1);
  inner.low += mixed;
  inner.high ^= carry;
  inner.rounds += rounds;
  return inner;
}

template <typename... Parts> __attribute__((noinline)) long summed(int seed, Parts... parts) {
  double all = (double(parts) + ...);
  long r = stop_away(seed);
  return r + long(all) + long(sizeof...(parts));
}

// A knapsack, by recursion: values in registers that calls preserve, and what
// can be computed from them.
struct Item { uint32_t weight; int32_t gain; uint16_t group; };
__attribute__((noinline)) long fill_bag(const Item *item, int left, long room, long gained) {
  const Item *next = item + 1;
  int remaining = left - 1;
  long half = room / 2;
  if (left == 0) return stop_away(gained + half) + remaining;
  uint32_t weight = item->weight;
  long smaller = room - weight, better = gained + weight * 2;
  short tag = short(weight ^ 0x155);
  double per_item = double(room) / left;
  assert(per_item > 0);
  bool fits = room >= long(weight);
  long taken = fits ? fill_bag(next, remaining, smaller, better) : -1;
  results += remaining + room + gained + weight;
  return taken + tag + (smaller & 1) + (better & 1) + half + next->group;
}

// A chain of numbers: everything follows from two of them.
__attribute__((noinline)) uint64_t chain(uint64_t n, unsigned steps, uint8_t salt) {
  uint64_t half = n / 2, tripled = n * 3 + 1;
  unsigned odd = n & 1, taken = steps + 1;
  Pair both{unsigned(n), 1.5f};
  int16_t low = int16_t(n);
  uint64_t next = odd ? tripled : half;
  float ratio = float(int(steps)) / 3;
  int64_t below = -int64_t(n) / 7;
  assert(ratio >= 0 && below <= 0);
  if (n == 1) return uint64_t(stop_away(long(steps))) + salt;
  uint64_t last = chain(next, taken, uint8_t(salt + 3));
  results += long(n + steps);
  return last + (odd ? half : tripled) + taken + both.first + unsigned(low);
}

// What the threads do.
const std::string text = "sell 1 1010 5\nsell 2 1020 7\nsell 3 1030 2\nbuy 4 1025 3\nbuy 5 1040 11\nsell 6 990 4\nbuy 7 1100 9\n";
const std::vector<Event> events = {Order{1, Side::buy, {1, 2, -3, 44, true}, {512, 10}, 3, "ann"}, Fill{1, 2, {77, 10}, 5}, std::string("halted"),
                                   Fill{3, 4, {99, 10}, 6}, Order{9, Side::sell, {0, 7, 4, 5, false}, {-20, 10}, 8, "bob"}, std::string("open")};
std::vector<std::pair<double, int>> rows;
Matrix<5> matrix;
Item items[25];
const uint8_t key[4] = {3, 1, 4, 1};
const int jobs = 11;

static void *work(void *argument) {
  long number = long(argument), r = 0;
  switch (number) {
  case 0: r = trade(text, 3); break;
  case 1: r = long(price_tree(9, 1.5, 0.75, 0.03f, 1, 100)); break;
  case 2: r = visit(events, 0, 1, 10, 'a'); break;
  case 3: r = ranked(rows, 3.25, 40); break;
  case 4: r = long(determinant<5>(matrix, 3, 2)); break;
  case 5: r = overnight(2, 3); break;
  case 6: r = long(absorb({0x1234567, 9, 1}, {17, 23}, key, 12).low); break;
  case 7: r = checksum(text.data(), text.size(), 0x10001, 25); break;
  case 8: r = summed(5, 2.5f, 'c', uint16_t(700), 1e3, -4L); break;
  case 9: r = fill_bag(items, 24, 5000, 0); break;
  case 10: r = long(chain(36, 1, 7)); break;
  }
  results += r * number;
  return nullptr;
}

int main() {
  for (int i = 0; i < 24; i++) rows.push_back({std::sin(i * 1.7) * 50, i});
  for (int i = 0; i < 25; i++) matrix.cell[i] = (i * 7 + 3) % 11 - 4.5 + (i % 6 == 0 ? 9 : 0);
  for (int i = 0; i < 25; i++) items[i] = {uint32_t(i * 13 % 17 + 20), i * 5 % 23, uint16_t(i)};
  for (long i = 0; i < jobs; i++) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, work, (void *)i) != 0) return 1;
  }
  while (parked < jobs) usleep(1000);
  usleep(20000);
  printf("ready %d\n", getpid());
  fflush(stdout);
  for (;;) pause();
}
