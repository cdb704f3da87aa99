// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	entry "github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestCallsOfEntries evaluates the variables of testdata/calls/calls.s.
func TestCallsOfEntries(t *testing.T) {
	oracle.Tools(t, "as", "ld")
	dir := t.TempDir()
	oracle.Run(t, "as", "-o", filepath.Join(dir, "calls.o"), "testdata/calls/calls.s")
	path := filepath.Join(dir, "calls")
	oracle.Run(t, "ld", "-e", "0x1000", "-Ttext=0x1000", "-o", path, filepath.Join(dir, "calls.o"))
	file, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	module := &target.Module{
		Module: trace.Module{
			Path: path,
			Arch: "x86_64",
			File: path,
			Segments: []trace.Segment{
				{Address: 0x1000, Size: 0x100, Start: 0x1000, Executable: true},
			},
		},
		Object: file,
	}

	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	at := func(pc uint64) walk.Activation {
		s := &walk.Sample{Sample: trace.Sample{Arch: "x86_64", ThreadID: "1", StackStart: 0x7000, Stack: make([]byte, 0x40)}, Loaded: []*target.Module{module}}
		copy(s.Stack[0x10:], []byte{0xfe, 0xff, 1, 2})
		s.Registers.Set(16, binary.LittleEndian.AppendUint64(nil, pc))    // rip
		s.Registers.Set(3, make([]byte, 8))                               // rbx
		s.Registers.Set(7, binary.LittleEndian.AppendUint64(nil, 0x7000)) // rsp
		tg := e.Attach(s)
		_, frames := tg.Process().Activations(context.Background(), tg.Threads()[0])
		return frames[0].With(walk.Surroundings{Object: func(context.Context, locexpr.Context) (locexpr.Location, error) {
			return locexpr.MemoryLocation(locexpr.DefaultSpace, 0xb0b), nil
		}})
	}
	for _, c := range []struct {
		name string
		pc   uint64
		want string
		err  error
		says string // the error
	}{
		{name: "same_stack", want: "{10}"},
		{name: "calls_that_call", want: "{12}"},
		{name: "location", want: "memory 0x7018"},
		{name: "from_list", want: "memory 0x7020"},
		{name: "from_list", pc: 0x1018, want: "register 3"},
		{name: "from_list", pc: 0x1028, want: "undefined"},
		{name: "from_constant", want: "{287454020}"},
		{name: "no_effect", want: "{9}"},
		{name: "other_unit", want: "{6}"},
		{name: "list_that_calls", want: "{21}"},
		{name: "value_of", want: "{-2}"},
		{name: "object", want: "memory 0xb0b"},
		{name: "object_of_a_list", err: locexpr.ErrNoContext},
		{name: "circle", err: locexpr.ErrLimit},
		{name: "list_in_a_circle", err: locexpr.ErrLimit},
		{name: "underflow", err: locexpr.ErrStackUnderflow},
		{name: "no_entry", says: "an entry is expected"},
	} {
		t.Run(fmt.Sprintf("%s at %#x", c.name, c.pc), func(t *testing.T) {
			if c.pc == 0 {
				c.pc = 0x1008
			}
			frame := at(c.pc)
			function, variable := entryNamed(t, frame, c.name)
			l, err := frame.Locate(t.Context(), function, variable)
			got := callResult(frame.UnitContext(function, variable.Unit()), l)
			switch {
			case c.says != "":
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s, %v, expected an error that says %q", got, err, c.says)
				}
			case c.err != nil:
				if !errors.Is(err, c.err) {
					t.Errorf("%s, %v, expected %v", got, err, c.err)
				}
			case err != nil || got != c.want:
				t.Errorf("%s, %v, expected %s", got, err, c.want)
			}
		})
	}
}

// entryNamed is the function of a frame, and an entry of its unit.
func entryNamed(t *testing.T, frame walk.Activation, name string) (function, named entry.Entry) {
	t.Helper()
	scopes, err := frame.Module().Code.DWARF().Scopes(frame.Lookup())
	if err != nil || len(scopes) != 1 {
		t.Fatalf("%d scopes: %v", len(scopes), err)
	}
	root, err := scopes[0].Unit().Root()
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range root.Children() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == name {
			return scopes[0].Entry, e
		}
	}
	t.Fatalf("there is no entry %s", name)
	return function, named
}

// callResult is a location in short: an implicit one as its contents, a number
// of at most 4 bytes.
func callResult(ctx locexpr.Context, l locexpr.Location) string {
	p := l.Place(0)
	switch p.Storage {
	case locexpr.Memory:
		return fmt.Sprintf("memory %#x", p.Address)
	case locexpr.Register:
		return fmt.Sprintf("register %d", p.Register)
	case locexpr.Implicit:
		b := make([]byte, 4)
		for bits := uint64(32); bits > 0; bits -= 16 {
			if l.Read(context.Background(), ctx, b, bits) == nil {
				if bits == 16 {
					return fmt.Sprintf("{%d}", int16(binary.LittleEndian.Uint16(b)))
				}
				return fmt.Sprintf("{%d}", int32(binary.LittleEndian.Uint32(b)))
			}
		}
	}
	return l.String()
}
