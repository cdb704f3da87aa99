// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"
	"testing"
)

// TestFunctionsAreFoundByTheirNames: exactly, without parameters, or as they are called.
func TestFunctionsAreFoundByTheirNames(t *testing.T) {
	all := []FunctionName{
		{"main", "", "main"}, {"f(int)", "_Z1fi", "f"}, {"f(char)", "_Z1fc", "f"},
		{"void sort<int, Less>(int*, int*, Less)", "_Z4sortIi4LessEvPT_S2_T0_", "sort<int, Less>"},
		{"a::b::get() const", "_ZNK1a1b3getEv", ""}, {"f(int) (.cold)", "_Z1fi.cold", ""},
		{"(anonymous namespace)::hidden(int)", "_ZN1_6hiddenEi", ""}, {"<Vec<T> as Drop>::drop", "_ZN1d", "drop"},
		{"S::operator()(int) const", "_ZNK1SclEi", "operator()"}, {"std::vector<int>::operator<(int)", "_Z", "operator<"},
		{"std::function<void (int)> make<int>(int)", "_Z4makeIiE", "make<int>"}, {"main.(*T).Work", "", "main.(*T).Work"},
	}
	for name, want := range map[string]string{
		"main": "main", "f(int)": "f(int)", "_Z1fc": "f(char)", "f": "f(int)|f(char)|f(int) (.cold)", "sort<int, Less>": all[3].Function,
		"sort": all[3].Function, "a::b::get": all[4].Function, "(anonymous namespace)::hidden": all[6].Function,
		"drop": all[7].Function, "S::operator()": all[8].Function, "operator<": all[9].Function, "make": all[10].Function,
		"main.(*T).Work": "main.(*T).Work", "nothing": "", "f(": "", "": "",
	} {
		var got []string
		for _, f := range FindFunctions(all, name) {
			got = append(got, f.Function)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q, expected %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"srot": all[3].Function, "hidde": all[6].Function, "SORT": all[3].Function, "mian": "main", "completely_other": "",
	} {
		if near := nearFunctions(all, name); !slices.Equal(near[:min(len(near), 1)], strings.Split(want, "|")[:len(near[:min(len(near), 1)])]) || len(near) == 0 != (want == "") {
			t.Errorf("near %s: %q, expected %s first", name, near, want)
		}
	}
	if err := UnknownFunction("perf.data", all, "srt"); !strings.Contains(err.Error(), "perf.data: no function srt was sampled or called; near are: ") {
		t.Error(err)
	}
}

// FuzzFunctionNames: names of symbols are any bytes.
func FuzzFunctionNames(f *testing.F) {
	f.Add("void f<a>(b) const (.cold)", "f")
	f.Add("operator<", "operator")
	f.Add(")(", "<>")
	f.Add("", "0")
	f.Fuzz(func(t *testing.T, function, name string) {
		all := []FunctionName{{function, "", function}}
		if isFound := len(FindFunctions(all, function)) == 1; isFound != (function != "") {
			t.Errorf("%q is found: %v", function, isFound)
		}
		FindFunctions(all, name)
		nearFunctions(all, name)
	})
}
