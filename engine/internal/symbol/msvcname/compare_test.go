// SPDX-License-Identifier: Apache-2.0

package msvcname

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/internal/oracle"
)

// tool is the program whose spelling of names is ours.
const tool = "llvm-undname-22"

// undname returns names as llvm-undname writes them; "" for one that it refuses.
func undname(t *testing.T, names []string, flags ...string) []string {
	t.Helper()
	cmd := exec.Command(oracle.Tool(t, tool), flags...)
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n") + "\n")
	out, err := cmd.Output()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 1) { // 1: it refused one
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	readable := make([]string, len(names))
	for i, name := range names {
		if len(lines) < 2 || lines[0] != name {
			t.Fatalf("%s answers %q to %q", tool, lines[:min(1, len(lines))], name)
		}
		if lines = lines[1:]; lines[0] != "" {
			readable[i], lines = lines[0], lines[1:]
		}
		lines = lines[1:]
	}
	return readable
}

// flags are the options of llvm-undname, each for a member of Style.
var flags = []struct {
	flag string
	set  func(*Style)
}{
	{"--no-access-specifier", func(s *Style) { s.NoAccess = true }}, {"--no-calling-convention", func(s *Style) { s.NoCallingConvention = true }},
	{"--no-member-type", func(s *Style) { s.NoMemberType = true }}, {"--no-return-type", func(s *Style) { s.NoReturnType = true }},
	{"--no-variable-type", func(s *Style) { s.NoVariableType = true }},
}

// stackFlags are the options for the style Stacks.
var stackFlags = []string{flags[0].flag, flags[1].flag, flags[2].flag, flags[3].flag}

// notLLVMs are parts of names that llvm-undname does not read, or reads wrongly: docs/differences.md has
// them.
var notLLVMs = regexp.MustCompile(`\$\$h|E\$A|@Yw|_L|_M[^A-Z]|\$M?[A-Z]?[2-8ABC][^@$]|\$\$B[^Y]|^\?A0x`)

// compare holds names against what the tool makes of them in a style. mayDiffer tells which names may
// read differently; it is nil for names of no program: after an error in one of these the tool sometimes
// goes on (docs/differences.md).
func compare(t *testing.T, names []string, mayDiffer *regexp.Regexp, style Style, flags ...string) {
	t.Helper()
	refused, forgotten, beyond := 0, 0, 0
	for i, want := range undname(t, names, flags...) {
		got, ok := Undecorate(names[i], style)
		switch {
		case got == want && ok == (want != ""):
			if !ok {
				refused++
			}
		case !ok && mayDiffer == nil: // the tool forgot an error
			forgotten++
		case mayDiffer != nil && mayDiffer.MatchString(names[i]):
			beyond++
		default:
			t.Errorf("%s\n got %q\nwant %q", names[i], got, want)
		}
	}
	t.Logf("%v: %d names; both refuse %d, %s reads another %d; %d have parts that it does not know", flags, len(names), refused, tool, forgotten, beyond)
	if forgotten*200 > len(names) {
		t.Errorf("%d of %d names are not read that %s reads, expected at most 0.5%%", forgotten, len(names), tool)
	}
}

// compareStyles compares in each style.
func compareStyles(t *testing.T, names []string) {
	t.Helper()
	slices.Sort(names)
	names = slices.Compact(names)
	compare(t, names, notLLVMs, Style{})
	compare(t, names, notLLVMs, Stacks, stackFlags...)
	for _, f := range flags {
		var style Style
		f.set(&style)
		compare(t, names, notLLVMs, style, f.flag)
	}
}

func TestNamesEqualLLVMs(t *testing.T) {
	oracle.All(t)
	var names []string
	for _, c := range readable {
		names = append(names, c.name)
	}
	compareStyles(t, append(names, exports(t)...))
}

// exports are the decorated names of Wine's libraries.
func exports(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob("/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/*.dll")
	if err != nil || len(paths) == 0 {
		oracle.Missing(t, "Wine's libraries are missing: install libwine")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := pe.New(path, data)
		if err != nil {
			t.Fatal(err)
		}
		list, err := f.Exports()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if IsDecorated(e.Name) {
				names = append(names, e.Name)
			}
		}
	}
	if len(names) < 5000 {
		t.Fatalf("%d names, expected 5000 or more", len(names))
	}
	return names
}

// symbolPattern finds decorated names in LLVM's text.
var symbolPattern = regexp.MustCompile(`@"\\?\\?0?1?(\?[^"\\]*)"`)

// TestNamesOfClangEqualLLVMs compares the names of what C++ has, for each machine.
func TestNamesOfClangEqualLLVMs(t *testing.T) {
	oracle.All(t)
	for _, machine := range []string{"x86_64", "aarch64", "arm64ec", "i686"} {
		t.Run(machine, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "names.ll")
			oracle.Run(t, "clang++-22", "--target="+machine+"-pc-windows-msvc", "-std=c++20", "-w", "-fexceptions", "-fcxx-exceptions", "-S", "-emit-llvm", "-o", out, "testdata/names.cpp")
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, m := range symbolPattern.FindAllStringSubmatch(string(data), -1) {
				names = append(names, m[1])
			}
			if len(names) < 300 {
				t.Fatalf("%d names, expected 300 or more", len(names))
			}
			compareStyles(t, names)
		})
	}
}

func TestMadeNamesEqualLLVMs(t *testing.T) {
	oracle.All(t)
	const count = 100_000 // that are read
	m := &maker{Rand: rand.New(rand.NewPCG(1, 2))}
	names := map[string]bool{}
	for read := 0; read < count; {
		name := m.symbol()
		if len(name) > 1000 || names[name] {
			continue
		}
		names[name] = true
		if _, ok := Undecorate(name, Style{}); ok {
			read++
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	compare(t, sorted, nil, Style{})
	compare(t, sorted, nil, Stacks, stackFlags...)
}
