// SPDX-License-Identifier: Apache-2.0

// Package templates has a large C++ program: templates of the standard library in many
// translation units.
package templates

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// Units is how many files there are.
const Units = 32

// unit is one of them. Types of its own make every template of the
// standard library that it uses one of its own.
const unit = `#include <algorithm>
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

// Sum is a hash of the sources.
func Sum() []byte {
	sum := sha256.Sum256(fmt.Append(nil, Units, unit))
	return sum[:8]
}

// Calls is the text of a C++ function `double all(const std::string &)`, which calls
// what the first units have.
func Calls(units int) []byte {
	text, calls := []byte("#include <string>\n"), ""
	for n := range units {
		text = fmt.Appendf(text, "namespace unit%d { double all(const std::string &); }\n", n)
		calls += fmt.Sprintf(" + unit%d::all(s)", n)
	}
	return fmt.Appendf(text, "double all(const std::string &s) { return 0%s; }\n", calls)
}

// Compile compiles the first units in a folder with flags of g++, as many at a time as there
// are processors. It returns the names of the object files there, and keeps those that
// an earlier run made.
func Compile(dir string, units int, flags ...string) ([]string, error) {
	fmt.Fprintf(os.Stderr, "compiling %d files in %s\n", units, dir)
	var objects []string
	var wait sync.WaitGroup
	numbers := make(chan int)
	failed := make([]error, units)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for n := range numbers {
				failed[n] = compile(dir, fmt.Sprintf("unit%d", n), flags)
			}
		})
	}
	for n := range units {
		name := fmt.Sprintf("unit%d", n)
		if failed[n] = os.WriteFile(filepath.Join(dir, name+".cc"), fmt.Appendf(nil, unit, n), 0o600); failed[n] == nil {
			numbers <- n
		}
		objects = append(objects, name+".o")
	}
	close(numbers)
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func compile(dir, name string, flags []string) error {
	object := filepath.Join(dir, name+".o")
	if _, err := os.Stat(object); err == nil {
		return nil
	}
	args := append([]string{"-std=c++17", "-c", name + ".cc", "-o", object + ".new"}, flags...)
	if err := cost.Run(dir, "g++", args...); err != nil {
		return err
	}
	return os.Rename(object+".new", object)
}
