// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"compress/gzip"
	"context"
	"encoding/gob"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// fixture has the memory that the plugin reads of a process which has stopped, and the words of that process itself.
type fixture struct {
	Request sdk.OpenRuntimeRequest
	Pages   map[uint64][]byte
	Want    wanted
}

// wanted has the words of a process: what repr() returns for variables and attributes, and the exceptions of its threads.
type wanted struct {
	Reprs      map[string]string
	Attributes map[string]map[string]string
	Params     []string
	Unset      []string
}

// memory is an engine that has pages of memory alone.
type memory struct {
	pages map[uint64][]byte
	read  func(address uint64, buf []byte) (int, error) // reads a page that is not there; nil: none
}

const page = 4096

func (m *memory) ReadMemory(_ context.Context, r sdk.MemoryRange, buf []byte) (n int, err error) {
	if r.Space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d", r.Space)
	}
	for n < len(buf) {
		address := r.Address + uint64(n) //nolint:gosec // not negative
		start := address &^ (page - 1)
		data, isThere := m.pages[start]
		if !isThere && m.read != nil {
			data = make([]byte, page)
			if _, err := m.read(start, data); err != nil {
				data = nil
			}
			m.pages[start] = data
		}
		if data == nil {
			return n, fmt.Errorf("%#x is not there", address)
		}
		n += copy(buf[n:], data[address-start:])
	}
	return n, nil
}

func (m *memory) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, nil
}

func (m *memory) ReadSection(context.Context, uint64, string) ([]byte, error) {
	return nil, fmt.Errorf("no section")
}

func (m *memory) FindFunctions(_ context.Context, addresses []uint64) ([]sdk.FunctionPlace, error) {
	return make([]sdk.FunctionPlace, len(addresses)), nil
}

// ask opens the runtime of a fixture, and finds the frames of its first thread with their variables.
func ask(ctx context.Context, f *fixture, m *memory, depth, elements uint32) (*sdk.ManagedStack, error) {
	p := New()
	opened, err := p.OpenRuntime(ctx, m, &f.Request)
	if err != nil || len(opened.Problems) > 0 {
		return nil, fmt.Errorf("open: %w %v", err, opened)
	}
	answer, err := p.ManagedFrames(ctx, m, &sdk.ManagedFramesRequest{
		Runtime: f.Request.Runtime, Variables: true, Depth: depth, Elements: elements,
		Threads: []sdk.NativeStack{{Thread: f.Request.Threads[0].Thread, IsCut: true}},
	})
	if err != nil {
		return nil, err
	}
	return &answer.Stacks[0], nil
}

func readFixture(t testing.TB, path string) *fixture {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{}
	if err := gob.NewDecoder(z).Decode(f); err != nil {
		t.Fatal(err)
	}
	return f
}

// summaries are values whose text is not that of repr().
var summaries = []string{"n1", "n2", "y2"}

var hex = regexp.MustCompile(`0x[0-9a-f]+`)

// variablesOf are the variables of the function that the program stops in.
func variablesOf(t *testing.T, s *sdk.ManagedStack) []sdk.ManagedVariable {
	t.Helper()
	for _, r := range s.Runs {
		for _, f := range r.Frames {
			if f.Function == "kept" {
				return f.Variables
			}
		}
	}
	t.Fatalf("the function kept is not there: %+v", s)
	return nil
}

func fixtures(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/values-*.gz")
	if err != nil || len(paths) == 0 {
		t.Fatal("no fixtures", err)
	}
	return paths
}

// TestValues compares the text of variables of many classes with what repr() returned in the process.
func TestValues(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := readFixture(t, path)
			s, err := ask(t.Context(), f, &memory{pages: f.Pages}, 20, 1000)
			if err != nil {
				t.Fatal(err)
			}
			have := map[string]sdk.ManagedVariable{}
			var params []string
			for _, v := range variablesOf(t, s) {
				have[v.Name] = v
				if v.IsParam {
					params = append(params, v.Name)
				}
			}
			compareTexts(t, "", f.Want.Reprs, have)
			for _, name := range slices.Sorted(maps.Keys(f.Want.Attributes)) {
				children := map[string]sdk.ManagedVariable{}
				for _, c := range have[name].Children {
					children[c.Name] = c
				}
				compareTexts(t, name+".", f.Want.Attributes[name], children)
			}
			if slices.Sort(params); !slices.Equal(params, f.Want.Params) {
				t.Errorf("parameters %v, expected %v", params, f.Want.Params)
			}
			for _, name := range f.Want.Unset {
				if v, isThere := have[name]; !isThere || v.Status != sdk.ValueUnset {
					t.Errorf("%s is %+v, expected no value", name, v)
				}
			}
		})
	}
}

func compareTexts(t *testing.T, prefix string, want map[string]string, have map[string]sdk.ManagedVariable) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v, isThere := have[name]
		switch text := want[name]; {
		case !isThere:
			t.Errorf("%s%s is missing", prefix, name)
		case slices.Contains(summaries, prefix+name) && strings.Contains(v.Text, v.Type):
		case hex.ReplaceAllString(v.Text, "0x") != hex.ReplaceAllString(text, "0x"):
			t.Errorf("%s%s is %s, expected %s", prefix, name, v.Text, text)
		}
	}
}

// TestValueLimits holds values to the levels and elements that were requested.
func TestValueLimits(t *testing.T) {
	f := readFixture(t, fixtures(t)[0])
	s, err := ask(t.Context(), f, &memory{pages: f.Pages}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"s2": `'te'...`, "l2": `[1, 'tw'..., ...]`, "l3": "[0, 0, ...]", "d2": `{'a': 1, 'b': [...]}`, "t3": "(1, (...))", "l1": "[]", "b2": `b'by'...`,
		"q3": "deque([1, 2, ...])", "big": "18446744073709551616",
	}
	for _, v := range variablesOf(t, s) {
		if text, isKnown := want[v.Name]; isKnown && v.Text != text {
			t.Errorf("%s is %s, expected %s", v.Name, v.Text, text)
		}
		if len(v.Children) > 2 {
			t.Errorf("%s has %d attributes, expected 2", v.Name, len(v.Children))
		}
		delete(want, v.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestValuesOfDamagedMemory takes pages away, one after the other: what cannot be read says so, and nothing else changes
// but that.
func TestValuesOfDamagedMemory(t *testing.T) {
	for _, path := range fixtures(t)[:1] {
		f := readFixture(t, path)
		pages := slices.Sorted(maps.Keys(f.Pages))
		missing := 0
		for i := range 40 {
			at := pages[i*len(pages)/40]
			m := &memory{pages: maps.Clone(f.Pages)}
			m.pages[at] = nil
			s, err := ask(t.Context(), f, m, 20, 1000)
			if err != nil {
				missing++ // the runtime itself
				continue
			}
			for _, r := range s.Runs {
				for _, frame := range r.Frames {
					missing += checkDamaged(t, f, frame)
				}
			}
		}
		if missing == 0 {
			t.Error("nothing was missing")
		}
	}
}

// plain are the variables whose values are of no class of the program.
var plain = regexp.MustCompile(`^([bcdeflqrst][0-9]+|big.*|small|bit.*|first|rest|word)$`)

// checkDamaged holds variables to the process's own words, and counts those that lack something.
func checkDamaged(t *testing.T, f *fixture, frame sdk.ManagedFrame) (missing int) {
	t.Helper()
	if frame.Function != "kept" {
		return 0
	}
	for _, v := range frame.Variables {
		want, isKnown := f.Want.Reprs[v.Name]
		switch {
		case v.Status == sdk.ValueUnreadable || strings.Contains(v.Text, "<unreadable>"):
			missing++
		case !isKnown || slices.Contains(summaries, v.Name) || v.Status == sdk.ValueUnset:
		case hex.ReplaceAllString(v.Text, "0x") != hex.ReplaceAllString(want, "0x"):
			// The name of a class, or of the members of its objects, is as good as its dictionary.
			if missing++; plain.MatchString(v.Name) {
				t.Errorf("%s is %s, expected %s", v.Name, v.Text, want)
			}
		}
	}
	return missing
}

// FuzzValues reads variables where bytes of the memory were changed.
func FuzzValues(f *testing.F) {
	all := make([]*fixture, 0, 8)
	for _, path := range fixtures(f) {
		all = append(all, readFixture(f, path))
	}
	f.Add(uint8(0), uint32(0), []byte{1})
	f.Add(uint8(1), uint32(4096), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, which uint8, place uint32, data []byte) {
		one := all[int(which)%len(all)]
		pages := slices.Sorted(maps.Keys(one.Pages))
		m := &memory{pages: maps.Clone(one.Pages)}
		for i, b := range data {
			at := (uint64(place) + uint64(i)*257) % (uint64(len(pages)) * page) //nolint:gosec // not negative
			start := pages[at/page]
			if m.pages[start] == nil {
				continue
			}
			m.pages[start] = slices.Clone(m.pages[start])
			m.pages[start][at%page] ^= b
		}
		s, err := ask(t.Context(), one, m, 5, 50)
		if err != nil {
			return
		}
		for _, r := range s.Runs {
			for _, frame := range r.Frames {
				for _, v := range frame.Variables {
					if len(v.Text) > 4*valueBytes {
						t.Errorf("%s has a text of %d bytes", v.Name, len(v.Text))
					}
				}
			}
		}
	})
}

// answers writes the values of a fixture within several limits.
func answers(t *testing.T, f *fixture, m *memory) string {
	t.Helper()
	text := ""
	for _, limits := range [][2]uint32{{20, 1000}, {1, 2}} {
		s, err := ask(t.Context(), f, m, limits[0], limits[1])
		if err != nil {
			return err.Error()
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return text
}

// clearUnused clears the parts of a page that no answer needs.
func clearUnused(t *testing.T, f *fixture, part []byte, want string) {
	t.Helper()
	kept := slices.Clone(part)
	if clear(part); len(part) == 0 || answers(t, f, &memory{pages: f.Pages}) == want {
		return
	}
	copy(part, kept)
	if half := len(part) / 2; half >= 64 {
		clearUnused(t, f, part[:half], want)
		clearUnused(t, f, part[half:], want)
	}
}

// Flags of TestRecord, which testdata/values.sh sets.
var (
	recordCore   = flag.String("record.core", "", "a core of a program that stopped in the function kept")
	recordModule = flag.String("record.module", "", "the module with the runtime")
	recordMaps   = flag.String("record.maps", "", "what /proc has of the process's mappings")
	recordWant   = flag.String("record.want", "", "what the process said of its variables")
	recordInto   = flag.String("record.into", "", "the fixture that is made")
)

// TestRecord makes a fixture of a core.
func TestRecord(t *testing.T) {
	if *recordCore == "" {
		t.Skip("testdata/values.sh makes fixtures")
	}
	f, read := openCore(t)
	m := &memory{pages: map[uint64][]byte{}, read: read}
	text, err := os.ReadFile(*recordWant)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &f.Want); err != nil {
		t.Fatal(err)
	}
	want := answers(t, f, m)
	f.Pages = m.pages
	for _, at := range slices.Sorted(maps.Keys(f.Pages)) {
		clearUnused(t, f, f.Pages[at], want)
	}
	file, err := os.Create(*recordInto)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := gob.NewEncoder(z).Encode(f); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
