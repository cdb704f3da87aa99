// A subject that draws in much of the standard library, for a debug information
// of tens of megabytes.
#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {
template <int N>
struct Node {
  std::map<std::string, std::vector<std::variant<int, double, std::string>>> values;
  std::unordered_map<std::string, std::shared_ptr<Node<N - 1>>> children;

  std::string render(const std::regex& pattern) const {
    std::ostringstream out;
    for (const auto& [name, list] : values) {
      if (!std::regex_search(name, pattern)) continue;
      out << std::setw(N) << name;
      for (const auto& v : list) std::visit([&](const auto& x) { out << ' ' << x; }, v);
    }
    std::set<std::string> names;
    for (const auto& child : children) names.insert(child.first);
    for (const auto& name : names) out << children.at(name)->render(pattern);
    return out.str();
  }

  size_t count() const {
    return std::accumulate(children.begin(), children.end(), values.size(),
                           [](size_t sum, const auto& child) { return sum + child.second->count(); });
  }
};

template <>
struct Node<0> {
  std::deque<long> numbers;
  std::string render(const std::regex&) const {
    std::list<long> sorted(numbers.begin(), numbers.end());
    sorted.sort(std::greater<long>());
    std::string text;
    for (long n : sorted) text += std::to_string(n) + ",";
    return text;
  }
  size_t count() const { return numbers.size(); }
};

template <int N>
std::shared_ptr<Node<N>> make(std::mt19937& random, int width) {
  auto node = std::make_shared<Node<N>>();
  if constexpr (N == 0) {
    std::generate_n(std::back_inserter(node->numbers), width, [&] { return long(random() % 100); });
  } else {
    for (int i = 0; i < width; i++) {
      auto name = "n" + std::to_string(random() % 50);
      node->values[name].emplace_back(i);
      node->values[name].emplace_back(name + name);
      node->children[name] = make<N - 1>(random, width);
    }
  }
  return node;
}
}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(42);
  auto root = make<6>(random, argc + 1);
  std::regex pattern(argc > 1 ? argv[1] : "n[0-4]");
  auto later = std::async(std::launch::async, [&] { return root->render(pattern); });
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(".")) files.push_back(entry.path());
  std::stable_sort(files.begin(), files.end(), std::greater<>());
  for (const auto& file : files) std::ifstream(file) >> std::ws;
  std::cout << root->count() << ' ' << later.get().size() << ' ' << files.size() << '\n';
}
