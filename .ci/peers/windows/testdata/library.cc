// SPDX-License-Identifier: Apache-2.0
// C++ with its library.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

struct animal { virtual ~animal() = default; virtual std::string say(int n) const = 0; };
struct dog : animal { std::string say(int n) const override { std::string s; while (n-- > 0) s += "wau "; return s; } };
struct cat : animal { std::string say(int n) const override { return std::to_string(n) + " miau"; } };

template <class K, class V> std::map<V, std::vector<K>> invert(const std::map<K, V> &m) {
  std::map<V, std::vector<K>> out;
  for (const auto &[k, v] : m)
    out[v].push_back(k);
  return out;
}

static int parse(const std::string &text) {
  static const std::regex number(R"((\d+)\s*([a-z]*))");
  std::smatch match;
  if (!std::regex_search(text, match, number))
    throw std::invalid_argument("no number in " + text);
  return std::stoi(match[1]) * (match[2].length() ? 2 : 1);
}

int main(int argc, char **argv) {
  std::vector<std::unique_ptr<animal>> list;
  list.push_back(std::make_unique<dog>());
  list.push_back(std::make_unique<cat>());
  std::unordered_map<std::string, int> seen;
  for (const auto &a : list)
    seen[a->say(argc)]++;
  std::map<std::string, int> count{{"one", 1}, {"two", 2}, {"uno", 1}};
  std::ostringstream out;
  for (const auto &[n, names] : invert(count))
    for (const auto &name : names)
      out << n << name << ' ';
  std::vector<int> numbers;
  for (int i = 1; i < argc; i++)
    try {
      numbers.push_back(parse(argv[i]));
    } catch (const std::exception &e) {
      std::cerr << e.what() << '\n';
    }
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a % 10 < b % 10; });
  std::function<int(int)> twice = [&](int x) { return x * 2 + static_cast<int>(seen.size()); };
  std::transform(numbers.begin(), numbers.end(), numbers.begin(), twice);
  for (int n : numbers)
    out << n << ',';
  std::cout << out.str() << std::endl;
}
