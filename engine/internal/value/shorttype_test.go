// SPDX-License-Identifier: Apache-2.0

package value

import "testing"

func TestTypesAreWrittenAsPeopleDo(t *testing.T) {
	for name, want := range map[string]string{
		"int": "int",
		"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >":    "std::string",
		"std::__1::vector<std::__1::basic_string<wchar_t>, std::__1::allocator<int>>":        "std::vector<std::wstring>",
		"std::map<int, char, std::less<int>, std::allocator<std::pair<int const, char> > >":  "std::map<int, char>",
		"std::map<int, char, std::less<void>, std::allocator<std::pair<int const, char> > >": "std::map<int, char, std::less<void>>",
		"std::unique_ptr<Node, std::default_delete<Node> >":                                  "std::unique_ptr<Node>",
		"std::vector<int, my::allocator<int> > const &":                                      "std::vector<int, my::allocator<int>> const &",
		"std::variant<int, std::vector<int, std::allocator<int> > *, double>":                "std::variant<int, std::vector<int> *, double>",
		"std::function<int (int, char)>":                                                     "std::function<int (int, char)>",
		"std::less<std::less<":                                                               "std::less<std::less<",
		"<":                                                                                  "<",
		"a>":                                                                                 "a>",
	} {
		if got := shortType(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func FuzzShortType(f *testing.F) {
	f.Add("std::map<int, char, std::less<int>, std::allocator<std::pair<int const, char> > >")
	f.Fuzz(func(t *testing.T, name string) {
		if len(shortType(name)) > 3*len(name)+3 {
			t.Error("it became longer")
		}
	})
}
