// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

// image is a file as a process would have it before it runs, which is what its
// initialized variables are read in.
type image struct {
	locexpr.NoContext
	object *object.Object
	unit   dwarf.Unit
}

var errNotThere = errors.New("not in the file")

func (m *image) ReadMemory(_ context.Context, _ locexpr.AddressSpace, _ locexpr.Scope, address uint64, dst []byte) error {
	for _, s := range m.object.Sections() {
		if s.Flags&2 == 0 || address < s.Address || address-s.Address >= s.Size {
			continue
		}
		data, err := s.Data()
		offset := address - s.Address
		if s.Size-offset < uint64(len(dst)) {
			return errNotThere
		}
		if err != nil || uint64(len(data)) < offset+uint64(len(dst)) { // .bss
			clear(dst)
			return nil //nolint:nilerr // it has no bytes in the file
		}
		copy(dst, data[offset:])
		return nil
	}
	return errNotThere
}

func (m *image) FloatFormat(t *locexpr.BaseType) locexpr.FloatFormat {
	return x86_64.Description().FloatFormat(t)
}

func (m *image) SpaceBits(locexpr.AddressSpace) (uint32, bool) { return 64, true }
func (m *image) Addrx(index uint64) (uint64, error)            { return m.unit.Addrx(index) }
func (m *image) Context(unit dwarf.Unit) locexpr.Context {
	return &image{object: m.object, unit: unit}
}
func (m *image) Symbol(uint64) (string, uint64)                                { return "", 0 }
func (m *image) PointerSpace(number locexpr.AddressSpace) locexpr.AddressSpace { return number }

func (m *image) AddressBits(locexpr.AddressSpace) uint32 { return 64 }
func (m *image) Module(uint64) (*dwarf.Reader, uint64)   { return nil, 0 }

func (m *image) Evaluate(ctx context.Context, l *dwarf.Location, _ locexpr.Location, initial ...locexpr.Entry) (locexpr.Location, error) {
	e := locexpr.Evaluator{}
	return e.Location(ctx, l.Expr, m.Context(l.Unit), initial...)
}

func (m *image) Number(ctx context.Context, l *dwarf.Location, _ locexpr.Location) (int64, error) {
	e := locexpr.Evaluator{}
	v, err := e.Value(ctx, l.Expr, m.Context(l.Unit))
	return int64(v.Uint64()), err
}

func (m *image) VariableNumber(context.Context, dwarf.Entry) (int64, error) { return 0, errNotThere }

// read reads a global of the file.
func (m *image) read(ctx context.Context, e dwarf.Entry, limits trace.ValueLimits) trace.Variable {
	r := NewReader(m, e.Unit().Language(), limits, nil)
	t, err := e.ValueType()
	var l locexpr.Location
	if err == nil {
		var placed *dwarf.Location
		if placed, err = e.Placed(); err == nil && placed != nil {
			l, err = m.Evaluate(ctx, placed, l)
		}
	}
	var v trace.Variable
	r.Variable(ctx, &v, e.Unit(), e.QualifiedName(), t, l, err)
	return v
}

// said is a variable with what a source file says of it.
var said = regexp.MustCompile(`// ([^=]*)= (.*)$`)

// saidIn are the variables of a source file with what is printed of them.
func saidIn(t *testing.T, path string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		m := said.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		name := strings.TrimSpace(m[1])
		if name == "" {
			code := strings.TrimSpace(strings.TrimSuffix(s.Text(), m[0]))
			if i := strings.Index(code, " = "); i >= 0 && !strings.Contains(code[:i], "{") {
				code = code[:i] + " ="
			} else if i := strings.LastIndex(code, "} "); i >= 0 {
				code = regexp.MustCompile(` = .*`).ReplaceAllString(code[i+2:], " =")
			}
			all := regexp.MustCompile(`(\w+)(\[\d*\])*( =|;)$`).FindStringSubmatch(code)
			if all == nil {
				t.Fatalf("%s: %s: no name", path, s.Text())
			}
			name = all[1]
		}
		want[name] = m[2]
	}
	return want
}

// TestValuesOfGlobals reads initialized variables from files of both compilers.
func TestValuesOfGlobals(t *testing.T) {
	for _, c := range []struct {
		source   string
		commands [][]string
	}{
		{"globals.c", [][]string{{"gcc", "-g"}, {"gcc", "-gdwarf-4"}, {"gcc", "-gdwarf-3", "-gstrict-dwarf"}, {"clang", "-g", "-gdwarf-5"}, {"clang", "-gdwarf-4"}, {"gcc", "-g", "-O2"}}},
		{"globals.cpp", [][]string{{"g++", "-g", "-std=c++20"}, {"g++", "-gdwarf-4", "-fdebug-types-section", "-std=c++20"}, {"clang++", "-gdwarf-5", "-std=c++20"}}},
	} {
		want := saidIn(t, filepath.Join("testdata", c.source))
		for _, command := range c.commands {
			t.Run(strings.Join(command, " "), func(t *testing.T) {
				source, err := filepath.Abs(filepath.Join("testdata", c.source))
				if err != nil {
					t.Fatal(err)
				}
				command = append(command, "-no-pie", source, "-o", "program")
				oracle.Tool(t, command[0])
				dir := oracle.Build{Sources: []string{source}, Commands: [][]string{command}}.Make(t)
				o, err := object.Open(filepath.Join(dir, "program"))
				if err != nil {
					t.Fatal(err)
				}
				defer o.Close()
				d, err := dwarf.New(o)
				if err != nil {
					t.Fatal(err)
				}
				m := &image{object: o}
				for name, text := range want {
					list, err := d.Globals(name)
					if err != nil || len(list) != 1 {
						t.Errorf("%s: %d variables: %v", name, len(list), err)
						continue
					}
					v := m.read(t.Context(), list[0], trace.DefaultValueLimits)
					if got := Line(&v.Value, list[0].Unit().Language()); got != text {
						t.Errorf("%s: %s", name, cmp.Diff(text, got))
					}
				}
			})
		}
	}
}
