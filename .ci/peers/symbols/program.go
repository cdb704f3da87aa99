package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// translationUnits is how many files the generated program has.
const translationUnits = 32

// translationUnit is one of them. Types of its own make every template of the
// standard library that it uses one of its own.
const translationUnit = `#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace unit%[1]d {
struct key { int a; std::string b; bool operator<(const key &o) const { return a != o.a ? a < o.a : b < o.b; } };
struct item { key k; std::vector<double> values; std::shared_ptr<item> next; };
template <int N> struct stage {
	std::map<key, std::vector<item>> items;
	std::unordered_map<std::string, std::set<key>> index;
	void add(const std::string &text) {
		std::istringstream in(text);
		for (std::string word; in >> word;) {
			item i{{int(word.size()) + N, word}, std::vector<double>(N + 3, 1.5), nullptr};
			index[word].insert(i.k);
			items[i.k].push_back(std::move(i));
		}
	}
	double sum(const std::function<double(const item &)> &f) const {
		double total = 0;
		for (auto &[k, list] : items)
			total = std::accumulate(list.begin(), list.end(), total, [&](double s, const item &i) { return s + f(i) * k.a; });
		return total;
	}
	std::vector<item> sorted() const {
		std::vector<item> all;
		for (auto &p : items) all.insert(all.end(), p.second.begin(), p.second.end());
		std::sort(all.begin(), all.end(), [](const item &x, const item &y) { return x.values.size() != y.values.size() ? x.values.size() < y.values.size() : x.k < y.k; });
		std::stable_sort(all.begin(), all.end(), [](const item &x, const item &y) { return x.k.b < y.k.b; });
		return all;
	}
	std::size_t matches(const std::string &pattern) const {
		std::regex r(pattern);
		return std::count_if(index.begin(), index.end(), [&](auto &p) { return std::regex_search(p.first, r); });
	}
	std::string text() const {
		std::variant<int, std::string, key> v = N %% 2 ? std::variant<int, std::string, key>(N) : std::variant<int, std::string, key>(key{N, "k"});
		std::ostringstream out;
		std::visit([&](auto &&x) { if constexpr (std::is_same_v<std::decay_t<decltype(x)>, key>) out << x.b; else out << x; }, v);
		for (auto &i : sorted()) out << i.k.b << ' ' << i.values.size() << '\n';
		return out.str();
	}
};
template <int N> double one(const std::string &text) {
	stage<N> s;
	s.add(text);
	return s.sum([](const item &i) { return i.values.at(0); }) + s.matches("^[a-f]+.*") + s.text().size();
}
double all(const std::string &text) { return one<1>(text) + one<2>(text) + one<3>(text) + one<4>(text); }
}
`

// generated is a large C++ program, built once.
func generated() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Append(nil, translationUnits, translationUnit))
	dir := filepath.Join(cache, "unwindd-peers", fmt.Sprintf("symbols-%x", sum[:8]))
	program := filepath.Join(dir, "program")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	fmt.Printf("compiling %d files in %s\n", translationUnits, dir)
	var main []byte
	main = append(main, "#include <string>\n"...)
	calls := ""
	objects := []string{"-o", program + ".new", "main.cc"}
	var wait sync.WaitGroup
	units := make(chan int)
	failed := make([]error, translationUnits)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for n := range units {
				failed[n] = cost.Run(dir, "g++", "-std=c++17", "-O2", "-g", "-c", fmt.Sprintf("unit%d.cc", n))
			}
		})
	}
	for n := range translationUnits {
		name := fmt.Sprintf("unit%d", n)
		if failed[n] = os.WriteFile(filepath.Join(dir, name+".cc"), fmt.Appendf(nil, translationUnit, n), 0o600); failed[n] == nil {
			units <- n
		}
		main = fmt.Appendf(main, "namespace %s { double all(const std::string &); }\n", name)
		calls += " + " + name + "::all(v[0])"
		objects = append(objects, name+".o")
	}
	close(units)
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return "", err
		}
	}
	main = fmt.Appendf(main, "int main(int, char **v) { return int(0%s); }\n", calls)
	if err := os.WriteFile(filepath.Join(dir, "main.cc"), main, 0o600); err != nil {
		return "", err
	}
	if err := cost.Run(dir, "g++", objects...); err != nil {
		return "", err
	}
	return program, os.Rename(program+".new", program)
}
