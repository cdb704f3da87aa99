// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// The programs in testdata/containers have containers whose contents are written in
// their sources. Each of their functions is stopped where all are made; unmade is
// stopped before any is.
const containersDir = "testdata/containers"

// containerFunctions are the functions with the argument that calls them.
var containerFunctions = map[string]string{"strings": "s", "texts": "t", "sequences": "q", "associative": "a", "others": "o", "unmade": "u"}

// A containerBuild is a program of containers.
type containerBuild struct {
	name      string
	source    string
	command   []string // that makes the program x
	functions []string
	// isOptimized says that variables may be optimized out, or not be described.
	isOptimized bool
	isMore      bool // it is much like others
	// other is the text of variables for which their library has another one.
	other map[string]string
}

var cppFunctions = []string{"strings", "sequences", "associative", "others"}

// otherLibrary has the variables that are in another order in LLVM's library, or under other names.
var otherLibrary = map[string]string{
	"associative um": "std::unordered_multimap with 2 elements = {[1] = 1, [1] = 2}",
	"others f1":      "std::function = {target = ADDR <vtable for std::__1::__function::__func<int (*)(int), std::__1::allocator<int (*)(int)>, int (int)>+16>}",
	"others f2":      "std::function = {target = ADDR <vtable for std::__1::__function::__func<others()::$_N, std::__1::allocator<others()::$_N>, int (int)>+16>}",
	"others complex": "{__re_ = 1, __im_ = 2}",
}

var otherCompiler = map[string]string{
	"others f2": "std::function = {target = ADDR <std::_Function_handler<int (int), others()::$_N>::_M_invoke(std::_Any_data const&, int&&)>}",
}

var containerBuilds = []containerBuild{
	{name: "gcc", source: "containers.cc", command: []string{"g++", "-std=c++17", "-g", "-O0"}, functions: cppFunctions},
	{name: "gcc -gdwarf-4", source: "containers.cc", command: []string{"g++", "-std=c++17", "-gdwarf-4", "-O0"}, functions: cppFunctions, isMore: true},
	{name: "gcc -O2", source: "containers.cc", command: []string{"g++", "-std=c++17", "-g", "-O2"}, functions: cppFunctions, isOptimized: true},
	{name: "gcc -D_GLIBCXX_DEBUG", source: "containers.cc", command: []string{"g++", "-std=c++17", "-g", "-O0", "-D_GLIBCXX_DEBUG"}, functions: cppFunctions, isMore: true},
	{
		name: "gcc, old strings", source: "containers.cc", command: []string{"g++", "-std=c++17", "-g", "-O0", "-D_GLIBCXX_USE_CXX11_ABI=0"},
		functions: cppFunctions, isMore: true,
	},
	{name: "clang", source: "containers.cc", command: []string{"clang++", "-std=c++17", "-g", "-O0"}, functions: cppFunctions, isMore: true, other: otherCompiler},
	{
		name: "clang -O2", source: "containers.cc", command: []string{"clang++", "-std=c++17", "-gdwarf-5", "-O2"}, functions: cppFunctions,
		other: otherCompiler, isOptimized: true, isMore: true,
	},
	{
		name: "clang -gsimple-template-names", source: "containers.cc", functions: cppFunctions, isMore: true, other: otherCompiler,
		command: []string{"clang++", "-std=c++17", "-g", "-O0", "-gsimple-template-names"},
	},
	{
		name: "clang, libc++", source: "containers.cc", command: []string{"clang++", "-std=c++17", "-g", "-O0", "-stdlib=libc++"},
		functions: cppFunctions, other: otherLibrary,
	},
	{
		name: "clang, libc++ -O2", source: "containers.cc", command: []string{"clang++", "-std=c++17", "-g", "-O2", "-stdlib=libc++"},
		functions: cppFunctions, other: otherLibrary, isOptimized: true, isMore: true,
	},
	{
		name: "rust", source: "containers.rs", command: []string{"rustc", "--edition", "2021", "-g"},
		functions: []string{"texts", "sequences", "associative", "others"},
	},
	{
		name: "rust -O", source: "containers.rs", command: []string{"rustc", "--edition", "2021", "-g", "-O"}, isOptimized: true,
		other:     map[string]string{"sequences slice": "*const [i32](size=2) = [2, 3]"}, // as rustc says
		functions: []string{"texts", "sequences", "associative", "others"},
	},
	{name: "go", source: "main.go", command: []string{"go", "build", "-gcflags=all=-N -l"}, functions: []string{"others"}},
}

// make makes the program and its cores.
func (b *containerBuild) make(t testing.TB) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(containersDir, b.source))
	if err != nil {
		t.Fatal(err)
	}
	oracle.Tools(t, "gdb")
	commands := [][]string{append(slices.Clone(b.command), "-o", "x", source)}
	for _, f := range b.functions {
		commands = append(commands, []string{
			"gdb", "-nx", "-batch", "-ex", "run " + containerFunctions[f], "-ex", "generate-core-file " + f + ".core", "./x",
		})
	}
	return oracle.Build{Sources: []string{source}, Commands: commands}.Make(t)
}

// localsOf are the variables of the frame of a function, by name.
func localsOf(t *testing.T, core, function string, limits trace.ValueLimits) map[string]trace.FrameVariable {
	t.Helper()
	e, err := engine.New(engine.Options{Locals: &limits, Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tg, err := e.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	for stack := range tg.Stacks(context.Background()) {
		for i := range stack.Frames {
			f := &stack.Frames[i]
			for level, s := range f.Symbols {
				name, _, _ := strings.Cut(s.Function, "(")
				if name != function && !strings.HasSuffix(name, "::"+function) && !strings.HasSuffix(name, "."+function) {
					continue
				}
				list := map[string]trace.FrameVariable{}
				if locals := f.Locals(); level < len(locals) {
					for _, v := range locals[level] {
						list[v.Name] = v
					}
				}
				return list
			}
		}
	}
	t.Fatalf("%s: %s is in no stack", core, function)
	return nil
}

// anyAddress is an address that differs from run to run.
var anyAddress = regexp.MustCompile(`0x[0-9a-f]{6,}`)

// lambdaNumber matches numbers that depend on the version of clang.
var lambdaNumber = regexp.MustCompile(`\$_\d+`)

// containerLine is a variable's text without addresses. That of long ones is cut.
func containerLine(v *trace.FrameVariable) string {
	text := anyAddress.ReplaceAllString(value.Line(&v.Value, v.Language), "ADDR")
	text = lambdaNumber.ReplaceAllString(text, "$$_N")
	return text[:min(len(text), 300)]
}

// wantedContainers is what a file says of variables: "FUNCTION NAME = TEXT" in each line.
func wantedContainers(t *testing.T, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(containersDir, name+".want"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		if !ok {
			t.Fatalf("%q", line)
		}
		want[name] = text
	}
	return want
}

// TestContainersHoldWhatTheSourceSays reads every variable of the programs, of every
// compiler and library that is here.
func TestContainersHoldWhatTheSourceSays(t *testing.T) {
	for i := range containerBuilds {
		b := &containerBuilds[i]
		t.Run(b.name, func(t *testing.T) {
			if testing.Short() && i > 0 && b.source == "containers.cc" && b.name != "clang, libc++" {
				t.Skip("one program of each library")
			}
			if b.isMore {
				proof.Only(t)
			}
			oracle.Tools(t, b.command[0])
			want := wantedContainers(t, b.source)
			dir := b.make(t)
			right, missing := 0, 0
			for _, function := range b.functions {
				list := localsOf(t, filepath.Join(dir, function+".core"), function, trace.DefaultValueLimits)
				for _, key := range slices.Sorted(func(yield func(string) bool) {
					for key := range want {
						if strings.HasPrefix(key, function+" ") && !yield(key) {
							return
						}
					}
				}) {
					v, ok := list[strings.TrimPrefix(key, function+" ")]
					text := want[key]
					if other := b.other[key]; other != "" {
						text = other
					}
					got := containerLine(&v)
					switch {
					case ok && (got == text || strings.HasSuffix(text, "...") && strings.HasPrefix(got, strings.TrimSuffix(text, "..."))):
						right++
					case b.isOptimized && (!ok || strings.Contains(got, "<optimized out>")):
						missing++
					case !ok:
						t.Errorf("%s is not there", key)
					default:
						t.Errorf("%s = %s\nwant %s", key, got, text)
					}
				}
			}
			t.Logf("%d are right, %d optimized out or not described", right, missing)
			if right < 3*missing || right == 0 {
				t.Errorf("%d are right, %d missing", right, missing)
			}
		})
	}
}

// printersOfGdb registers the printers that gcc's library has for gdb.
const printersOfGdb = `python
import glob, sys
sys.path[0:0] = glob.glob("/usr/share/gcc/python") + glob.glob("/usr/share/gcc-*/python")
from libstdcxx.v6.printers import register_libstdcxx_printers
register_libstdcxx_printers(None)
`

// selectFrame selects the frame of a function.
const selectFrame = `python
f = gdb.newest_frame()
while f is not None and (f.name() or "").split("(")[0] != "%s":
    f = f.older()
if f is not None:
    f.select()
`

// asGdbPrints are what is written in another way by gdb.
var asGdbPrints = []struct{ pattern, with string }{
	{`<No data fields>`, ""},
	{`std::__cxx11::`, "std::"},
	{`std::atomic<[^=]*> = \{ (.*) \}$`, "$1"},
	{`^std::(?:stack|queue|priority_queue) wrapping: `, ""},
	{`\{_M_elems = ([^=]*)\}`, "$1"},
	{`^\{__d = \{__r = (.*)\}\}$|^\{__r = (.*)\}$`, "$1$2"},
	{`^(std::variant.*\[index \d+\]) = \{(?:\[contained value\] = )?(.*)\}$`, "$1 = {[contained value] = $2}"},
	{`'\\000' <repeats 599 times>`, `{0 '\000' <repeats 200 times>...}`},
	{`(?:0x[0-9a-f]{6,})`, "ADDR"},
}

// unlikeGdb are the variables that gdb's printers leave as they are, and unwindd does not.
var unlikeGdb = map[string]string{
	"f0": "functions have no printer", "f1": "functions have no printer", "f2": "functions have no printer",
	"large":   "a string of one character is written once",
	"l1000":   "equal elements of lists are written again and again",
	"path":    "a path has its parts beside its text",
	"ref":     "references as objects have no printer",
	"adouble": "an atomic floating point number makes the printer fail",
}

// numberedElement is what gdb writes before an element of what is no array.
var numberedElement = regexp.MustCompile(`\[\d+\] = `)

func likeGdb(text string) string {
	for _, p := range asGdbPrints {
		text = regexp.MustCompile(p.pattern).ReplaceAllString(text, p.with)
	}
	if !strings.HasPrefix(text, "std::map") && !strings.Contains(text, "map with") {
		text = numberedElement.ReplaceAllString(text, "")
	}
	return text
}

// TestContainersAreShownAsByGdb compares every variable with what the printers of gcc's
// library say.
func TestContainersAreShownAsByGdb(t *testing.T) {
	b := &containerBuilds[0]
	dir := b.make(t)
	variable := regexp.MustCompile(`(?m)^([a-z]\w*) = (.*)$`)
	equal, different := 0, 0
	for _, function := range b.functions {
		core := filepath.Join(dir, function+".core")
		out := oracle.Run(t, "gdb", "-nx", "-batch", "-iex", "set auto-load safe-path /", "-iex", printersOfGdb, "-ex", "set print elements 200",
			"-ex", fmt.Sprintf(selectFrame, function), "-ex", "info locals", filepath.Join(dir, "x"), core)
		list := localsOf(t, core, function, trace.DefaultValueLimits)
		for _, m := range variable.FindAllStringSubmatch(out, -1) {
			v, ok := list[m[1]]
			if !ok {
				t.Errorf("%s %s is not there", function, m[1])
				continue
			}
			got, want := likeGdb(value.Line(&v.Value, v.Language)), likeGdb(m[2])
			switch {
			case got == want, strings.HasSuffix(want, "...}") && strings.HasPrefix(got, strings.TrimSuffix(want, "...}")):
				equal++
			case unlikeGdb[m[1]] != "":
				different++
			default:
				t.Errorf("%s %s = %s\ngdb: %s", function, m[1], got, want)
			}
		}
	}
	t.Logf("%d are equal, %d gdb leaves as they are", equal, different)
	if equal < 100 {
		t.Errorf("%d are equal", equal)
	}
}

// damaged is a core in which words of the heap were changed: some to other words of it,
// some at random.
func damaged(t *testing.T, core string, random *rand.Rand) string {
	t.Helper()
	b, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W == 0 || p.Filesz < 8 || p.Vaddr > 0x7e0000000000 {
			continue // the stack is left as it is, so that the frames are found
		}
		data := b[p.Off : p.Off+p.Filesz]
		word := func() []byte { return data[random.IntN(len(data)/8)*8:][:8] }
		for range len(data) / 200 {
			to := word()
			switch random.IntN(4) {
			case 0:
				copy(to, word())
			case 1:
				clear(to)
			case 2:
				binary.LittleEndian.PutUint64(to, p.Vaddr+uint64(random.IntN(len(data)))&^7)
			default:
				to[random.IntN(8)] ^= 1 << random.IntN(8)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDamagedContainersAreReadInBounds reads the containers of cores whose heap is
// damaged.
func TestDamagedContainersAreReadInBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, i := range []int{0, 8, 10, 12} {
		b := &containerBuilds[i]
		t.Run(b.name, func(t *testing.T) {
			oracle.Tools(t, b.command[0])
			dir := b.make(t)
			broken, rounds := 0, 3
			if b.name == "go" { // whose heap is large
				rounds = 1
			}
			for range rounds {
				for _, function := range b.functions {
					core := damaged(t, filepath.Join(dir, function+".core"), random)
					from := time.Now()
					for _, v := range localsOf(t, core, function, trace.ValueLimits{Depth: 8, Elements: 2000}) {
						if v.Status != trace.ValueOK {
							broken++
						}
						_ = value.Line(&v.Value, v.Language)
					}
					if took := time.Since(from); took > 20*time.Second {
						t.Errorf("%s took %v", function, took)
					}
					os.Remove(core)
				}
			}
			t.Logf("%d variables are not whole", broken)
			if broken == 0 {
				t.Error("nothing was damaged")
			}
		})
	}
}

// TestUnmadeContainersAreNone stops a program before its containers are made, on a stack
// that something else was on before.
func TestUnmadeContainersAreNone(t *testing.T) {
	b := containerBuilds[0]
	b.functions = []string{"unmade"}
	list := localsOf(t, filepath.Join(b.make(t), "unmade.core"), "unmade", trace.DefaultValueLimits)
	for _, name := range []string{"v", "s", "m", "u", "l", "d", "p", "w", "o", "a", "b", "t"} {
		v, ok := list[name]
		if !ok || v.Status == trace.ValueOK || !strings.Contains(v.Problem, "std::") {
			t.Errorf("%s = %s (%s)", name, value.Line(&v.Value, v.Language), v.Status)
		}
		if len(v.Children) == 0 {
			t.Errorf("%s: its members are not there", name)
		}
	}
}

// BenchmarkContainers reads the containers of a frame, as what they stand for and as
// they are.
func BenchmarkContainers(b *testing.B) {
	for _, limits := range []trace.ValueLimits{{}, {Raw: true}} {
		name := "forms"
		if limits.Raw {
			name = "raw"
		}
		b.Run(name, func(b *testing.B) {
			build := &containerBuilds[0]
			core := filepath.Join(build.make(b), "associative.core")
			e, err := engine.New(engine.Options{Locals: &limits, Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			for b.Loop() {
				tg, err := e.Open(core)
				if err != nil {
					b.Fatal(err)
				}
				for stack := range tg.Stacks(context.Background()) {
					for i := range stack.Frames {
						_ = stack.Frames[i].Locals()
					}
				}
			}
		})
	}
}

var (
	literal      = regexp.MustCompile(`"(?:\\.|[^"\\])*"|\b\d+(?:\.\d+)?\b`)
	noLiteral    = regexp.MustCompile(`len: \d+, cap: \d+|\[\d+\]`)
	wholeLiteral = regexp.MustCompile(`^(?:"(?:\\.|[^"\\])*"|\d+(?:\.\d+)?)$`)
)

// literals are the numbers and strings that a value consists of.
func literals(v *trace.Value) (list []string) {
	if len(v.Children) == 0 && wholeLiteral.MatchString(v.Text) {
		list = append(list, v.Text)
	}
	for i := range v.Children {
		list = append(list, literals(&v.Children[i])...)
	}
	return list
}

// TestGoValuesAreThoseOfDelve compares the numbers and strings of every variable, in
// their order, with what Delve prints.
func TestGoValuesAreThoseOfDelve(t *testing.T) {
	delve := oracle.Delve(t)
	b := &containerBuilds[12]
	dir := b.make(t)
	core := filepath.Join(dir, "others.core")
	list := localsOf(t, core, "others", trace.ValueLimits{Depth: 8, Elements: 64})
	// Of large arrays and maps it prints another part, and of channels how they are built.
	names := []string{
		"text", "empty", "slice", "nilSlice", "points", "bytes", "nested", "small", "nilMap", "emptyMap", "deleted", "named", "structs",
		"err", "noError", "number", "pointer", "object", "direct", "mapped", "pt", "array", "both", "duration",
	}
	var script strings.Builder
	for _, name := range names {
		fmt.Fprintf(&script, "print \"begin %s\"\nprint %s\n", name, name)
	}
	commands := filepath.Join(t.TempDir(), "commands")
	if err := os.WriteFile(commands, []byte(script.String()+"exit\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := oracle.Run(t, delve, "core", filepath.Join(dir, "x"), core, "--check-go-version=false", "--init", commands, "--allow-non-terminal-interactive=true")
	if !strings.Contains(out, "héllo") {
		oracle.Missing(t, "this version of Delve does not read what this version of Go writes: %.300s", out)
	}
	equal := 0
	for _, name := range names {
		_, text, _ := strings.Cut(out, `"begin `+name+`"`)
		text, _, _ = strings.Cut(text, `"begin `)
		v, ok := list[name]
		want := literal.FindAllString(noLiteral.ReplaceAllString(text, ""), -1)
		if got := literals(&v.Value); !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %q, Delve has %q (%s)", name, got, want, text)
			continue
		}
		equal++
	}
	t.Logf("%d of %d are equal", equal, len(names))
}
