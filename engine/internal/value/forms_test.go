// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
)

func TestEveryTableIsRead(t *testing.T) {
	for language, want := range map[string]int{"c++": 30, "rust": 20, "go": 6} {
		table := tables()[language]
		if table == nil || len(table.byName) < want {
			t.Errorf("%s: %v", language, table)
		}
	}
}

func TestTablesWithErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"form std::x<*>":                                     `line 1: "form" before the language`,
		"language c++\nlet a = b":                            `line 2: "let" before the first form`,
		"language c++\nform x\nlead a = b":                   `line 3: "lead" is no clause of a form`,
		"language c++\nform x\nlet a = b +":                  "line 3: ",
		"language c++\nform x\nlet a = b c":                  "line 3: ",
		"language c++\nform x\nlet a = (b":                   "line 3: ",
		"language c++\nform x\nlet a = b[1":                  "line 3: ",
		"language c++\nform x\nlet a = b.":                   "line 3: ",
		"language c++\nform x\ntext a":                       "line 3: ",
		"language c++\nform x\ntext \"{a\"":                  "line 3: ",
		"language c++\nform x\ntext \"a\" when b":            "line 3: ",
		"language c++\nform x\nstring a":                     "line 3: ",
		"language c++\nform x\nfollow a = b next c":          "line 3: ",
		"language c++\nform x\ntree a = b left c":            "line 3: ",
		"language c++\nform x\nfor i < 99999999999999999999": "line 3: ",
	} {
		err := readTable(map[string]*table{}, text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestPatternsMatchNames(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"std::vector<*>", "std::vector<int, std::allocator<int> >", true},
		{"std::vector<bool*>", "std::vector<int>", false},
		{"std::vector<bool*>", "std::vector<bool, std::allocator<bool> >", true},
		{"std::vector<*>", "std::vector", true}, // -gsimple-template-names
		{"std::any", "std::any", true},
		{"std::any", "std::anything", false},
		{"&[*]", "&[i32]", true},
		{"&[*]", "&str", false},
		{"*const [*]", "*const [u8]", true},
		{"a*b*c", "axxbxxc", true},
		{"a*b*c", "axxcxxb", false},
	} {
		if got := matches(test.pattern, test.name); got != test.want {
			t.Errorf("%s, %s: %v", test.pattern, test.name, got)
		}
	}
	for name, want := range map[string]string{
		"std::__cxx11::list<int>": "std::list<int>", "std::__1::map<int, int>": "std::map<int, int>", "std::__debug::vector<int>": "std::vector<int>",
		"std::chrono::__x": "std::chrono::__x", "stdx::__1::a": "stdx::__1::a", "std::__x": "std::__x", "std::list<std::__1::a>": "std::list<std::__1::a>",
		"std::filesystem::__cxx11::path": "std::filesystem::path", "std::__1::__fs::filesystem::path": "std::filesystem::path",
	} {
		if got := withoutVersion(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// garbage is memory of words that look like what containers hold: small numbers,
// addresses in the memory itself, bytes of control.
type garbage struct {
	image
	data []byte
}

const garbageAt = 0x10000

var errOutside = errNotThere

func (g *garbage) ReadMemory(_ context.Context, _ locexpr.AddressSpace, _ locexpr.Scope, address uint64, dst []byte) error {
	offset := address - garbageAt
	if offset > uint64(len(g.data)) || uint64(len(g.data))-offset < uint64(len(dst)) {
		return errOutside
	}
	copy(dst, g.data[offset:])
	return nil
}

func (g *garbage) Context(dwarf.Unit) locexpr.Context { return g }

func (g *garbage) fill(r *rand.Rand) {
	for i := 0; i+8 <= len(g.data); i += 8 {
		n := r.Uint64()
		switch r.IntN(8) {
		case 0, 1:
			n = 0
		case 2:
			n = uint64(r.IntN(20))
		case 3, 4, 5:
			n = garbageAt + uint64(r.IntN(len(g.data)))&^7
		case 6:
			n = uint64(r.IntN(1 << 20))
		}
		binary.LittleEndian.PutUint64(g.data[i:], n)
	}
}

// containerTypes are the types of the variables of the programs of containers.
func containerTypes(t testing.TB, source string, command ...string) []*dwarf.Type {
	t.Helper()
	path, err := filepath.Abs("../../testdata/containers/" + source)
	if err != nil {
		t.Fatal(err)
	}
	oracle.Tools(t, command[0])
	command = append(command, "-o", "x", path)
	o, err := object.Open(filepath.Join(oracle.Build{Sources: []string{path}, Commands: [][]string{command}}.Make(t), "x"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	d, err := dwarf.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	var list []*dwarf.Type
	seen := map[*dwarf.Type]bool{}
	err = o.EachSymbol(func(s *object.Symbol) {
		if !s.Defined() || s.Type != elf.STT_FUNC || !isOfContainers(s.Name) {
			return
		}
		scopes, err := d.Scopes(s.Address)
		if err != nil || len(scopes) == 0 {
			return
		}
		for c, err := range scopes[len(scopes)-1].Children() {
			if err != nil {
				t.Fatal(err)
			}
			addTypes(c, &list, seen)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func isOfContainers(symbol string) bool {
	for _, name := range []string{"7stringsv", "9sequencesv", "11associativev", "6othersv", "5texts", "9sequences", "11associative", "6others", "main.others"} {
		if strings.Contains(symbol, name) {
			return true
		}
	}
	return false
}

func addTypes(e dwarf.Entry, list *[]*dwarf.Type, seen map[*dwarf.Type]bool) {
	if e.Tag() == dw.TagVariable {
		if t, err := e.ValueType(); err == nil && !seen[t] {
			seen[t] = true
			*list = append(*list, t)
		}
		return
	}
	for c, err := range e.Children() {
		if err == nil {
			addTypes(c, list, seen)
		}
	}
}

// TestGarbageIsNoContainer reads objects of every type of the programs in memory that
// was never theirs, as variables are before they are made.
func TestGarbageIsNoContainer(t *testing.T) {
	for name, build := range map[string][]string{
		"gcc": {"containers.cc", "g++", "-std=c++17", "-g", "-O0"}, "libc++": {"containers.cc", "clang++", "-std=c++17", "-g", "-O0", "-stdlib=libc++"},
		"rust": {"containers.rs", "rustc", "--edition", "2021", "-g"}, "go": {"main.go", "go", "build", "-gcflags=all=-N -l"},
	} {
		t.Run(name, func(t *testing.T) {
			types := containerTypes(t, build[0], build[1:]...)
			if len(types) < 20 {
				t.Fatalf("%d types", len(types))
			}
			g := &garbage{data: make([]byte, 1<<16)}
			random := rand.New(rand.NewPCG(1, 2))
			limits := trace.DefaultValueLimits
			var worst, all time.Duration
			var slowest *dwarf.Type
			reads := 0
			for end := time.Now().Add(time.Second); time.Now().Before(end); {
				g.fill(random)
				for _, typ := range types {
					from := time.Now()
					r := NewReader(g, typ.Unit().Language(), limits, nil)
					var v trace.Value
					r.Read(t.Context(), &v, typ.Unit(), "v", typ, locexpr.MemoryLocation(locexpr.DefaultSpace, garbageAt+uint64(random.IntN(1<<15))&^7))
					took := time.Since(from)
					if all, reads = all+took, reads+1; took > worst {
						worst, slowest = took, typ
					}
					if n := countOf(&v); n > maxValues+1 {
						t.Fatalf("%s: %d values", typ, n)
					}
					_ = Line(&v, typ.Unit().Language())
				}
			}
			t.Logf("%d types, %d reads: %v each, at most %v of %s", len(types), reads, all/time.Duration(reads), worst, slowest)
			if worst > time.Second {
				t.Errorf("%s took %v", slowest, worst)
			}
		})
	}
}

func countOf(v *trace.Value) int {
	n := 1
	for i := range v.Children {
		n += countOf(&v.Children[i])
	}
	return n
}

func BenchmarkBind(b *testing.B) {
	types := containerTypes(b, "containers.cc", "g++", "-std=c++17", "-g", "-O0")
	bound := 0
	b.ReportAllocs()
	for b.Loop() {
		bound = 0
		for _, t := range types {
			if plain, err := t.Plain(); err == nil {
				bound += len(findForms(plain, plain))
			}
		}
	}
	b.ReportMetric(float64(bound), "forms")
}
