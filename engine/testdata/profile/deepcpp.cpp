// A program to record: deep stacks of templates. A tree of std::variant is
// evaluated through std::visit and std::function, and a std::regex backtracks.
// deepcpp SECONDS THREADS; the seconds are each thread's own on a processor.
// g++ -std=c++17 -O2 -g -pthread deepcpp.cpp -o deepcpp
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <variant>
#include <vector>
namespace ast {
struct Num { double v; };
struct Node;
using P = std::unique_ptr<Node>;
struct Bin { char op; P a, b; };
struct Call { std::string name; std::vector<P> args; };
struct Let { std::string name; P val, body; };
struct Var { std::string name; };
struct Node { std::variant<Num, Bin, Call, Let, Var> n; };
template <class... Ts> struct overloaded : Ts... { using Ts::operator()...; };
template <class... Ts> overloaded(Ts...) -> overloaded<Ts...>;
struct Env { std::map<std::string, double> m; const Env* up = nullptr;
  double get(const std::string& s) const { auto i = m.find(s); if (i != m.end()) return i->second; return up ? up->get(s) : 1.0; } };
using Fn = std::function<double(const std::vector<double>&)>;
struct Interp {
  std::map<std::string, Fn> fns;
  double eval(const Node& n, const Env& e) const {
    return std::visit(overloaded{
      [&](const Num& x) { return x.v; },
      [&](const Bin& b) { double l = eval(*b.a, e), r = eval(*b.b, e); switch (b.op) { case '+': return l + r; case '-': return l - r; default: return l * 0.5 * r; } },
      [&](const Call& c) { std::vector<double> a; a.reserve(c.args.size());
        std::transform(c.args.begin(), c.args.end(), std::back_inserter(a), [&](const P& p) { return eval(*p, e); }); return fns.at(c.name)(a); },
      [&](const Let& l) { Env f; f.up = &e; f.m[l.name] = eval(*l.val, e); return eval(*l.body, f); },
      [&](const Var& v) { return e.get(v.name); } }, n.n);
  }
};
P gen(std::mt19937& r, int d) {
  auto mk = [](auto x) { auto p = std::make_unique<Node>(); p->n = std::move(x); return p; };
  if (d == 0) return r() & 1 ? mk(Num{double(r() % 100)}) : mk(Var{std::string(1, 'a' + r() % 6)});
  switch (r() % 4) {
    case 0: return mk(Bin{"+-*"[r() % 3], gen(r, d - 1), gen(r, r() % std::min(d, 4))});
    case 1: { Call c; c.name = r() & 1 ? "sortsum" : "max"; c.args.push_back(gen(r, d - 1)); for (int i = 0; i < 3; i++) c.args.push_back(gen(r, r() % std::min(d, 3))); return mk(std::move(c)); }
    default: return mk(Let{std::string(1, 'a' + r() % 6), gen(r, r() % std::min(d, 3)), gen(r, d - 1)});
  }
}
}  // namespace ast
static double used() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
static double work(unsigned seed, double secs) {
  std::mt19937 r(seed); double acc = 0; ast::Interp in;
  in.fns["sortsum"] = [](const std::vector<double>& v) { auto w = v; for (int i = 0; i < 20; i++) w.push_back(v[0] * (i % 7)); std::sort(w.begin(), w.end(), [](double x, double y) { return x > y; }); return std::accumulate(w.begin(), w.end(), 0.0) * 1e-3; };
  in.fns["max"] = [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); };
  std::vector<ast::P> trees; for (int i = 0; i < 20; i++) trees.push_back(ast::gen(r, 60));
  std::regex re("((a|b|ab)*c|(x[0-9]+y)*z)+$");
  while (used() < secs) {
    ast::Env e; for (auto& t : trees) for (int k = 0; k < 30; k++) acc += in.eval(*t, e);
    std::string s; for (int i = 0; i < 24; i++) s += "ab"; s += 'c';
    acc += std::regex_match(s, re);
  }
  return acc;
}
int main(int argc, char** argv) {
  double secs = argc > 1 ? atof(argv[1]) : 20; int nt = argc > 2 ? atoi(argv[2]) : 2;
  std::vector<std::thread> ts; for (int i = 0; i < nt; i++) ts.emplace_back([=] { volatile double x = work(i + 1, secs); (void)x; });
  for (auto& t : ts) t.join(); puts("done");
}
