package engine_test

import (
	"context"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// callingUnit evaluates entries of a unit, as a reader of debugging information
// does.
type callingUnit struct {
	info *debugInfo
	unit *unit
	ev   *locexpr.Evaluator
}

func (u *callingUnit) surroundings() engine.Surroundings {
	return engine.Surroundings{
		CallEntry: u.callEntry,
		BaseType:  func(offset uint64) (*locexpr.BaseType, error) { return u.info.baseType(u.unit, offset) },
		VariableValue: func(ctx locexpr.Context, entry uint64) (locexpr.Value, error) {
			x, err := u.die(entry)
			if err != nil {
				return locexpr.Value{}, err
			}
			typ, err := u.info.baseType(x.unit, uint64(x.Val(dwarf.AttrType).(dwarf.Offset)-x.unit.offset))
			if err != nil {
				return locexpr.Value{}, err
			}
			l, err := u.ev.Location(x.Val(dwarf.AttrLocation).([]byte), ctx)
			if err != nil {
				return locexpr.Value{}, err
			}
			b := make([]byte, typ.Bits/8)
			if err := l.Read(ctx, b, uint64(typ.Bits)); err != nil {
				return locexpr.Value{}, err
			}
			return locexpr.ValueOf(typ, b, locexpr.LittleEndian)
		},
		Object: func(locexpr.Context) (locexpr.Location, error) {
			return locexpr.MemoryLocation(locexpr.DefaultSpace, 0xb0b), nil
		},
	}
}

func (u *callingUnit) die(offset uint64) (*die, error) {
	if x := u.info.dies[dwarf.Offset(offset)]; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("no entry at %#x", offset)
}

func (u *callingUnit) callEntry(ctx locexpr.Context, ref locexpr.EntryRef) (callee locexpr.Callee, err error) {
	if ref.InUnit {
		ref.Offset += uint64(u.unit.offset)
	}
	x, err := u.die(ref.Offset)
	if err != nil {
		return callee, err
	}
	if x.unit != u.unit {
		other := &callingUnit{u.info, x.unit, u.ev}
		ctx, _ = engine.Surround(ctx, other.surroundings())
		callee.Context = ctx
	}
	switch v := x.Val(dwarf.AttrLocation).(type) {
	case []byte:
		callee.Kind, callee.Expr = locexpr.CalleeExpression, v
		return callee, nil
	case int64:
		callee.Kind = locexpr.CalleeLocation
		callee.Location, err = u.ev.EvaluateList(&u.info.lists, uint64(v), x.unit.base, ctx)
		return callee, err
	}
	if v, ok := x.Val(dwarf.AttrConstValue).([]byte); ok {
		callee.Kind, callee.Location = locexpr.CalleeLocation, locexpr.ImplicitLocation(v)
	}
	return callee, nil
}

// TestCallsOfEntries evaluates the variables of testdata/calls/calls.s.
func TestCallsOfEntries(t *testing.T) {
	object := filepath.Join(t.TempDir(), "calls.o")
	oracle.Tools(t, "as")
	oracle.Run(t, "as", "-o", object, "testdata/calls/calls.s")
	info := readDebugInfo(t, object)
	named := map[string]*die{}
	for _, x := range info.dies {
		named[info.name(x)] = x
	}

	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	at := func(pc uint64) *engine.Synthetic {
		s := &engine.Synthetic{Arch: "x86_64", Memory: []engine.Piece{{Address: 0x7010, Bytes: []byte{0xfe, 0xff, 1, 2}}}}
		s.Registers.Set(16, binary.LittleEndian.AppendUint64(nil, pc))    // rip
		s.Registers.Set(3, make([]byte, 8))                               // rbx
		s.Registers.Set(7, binary.LittleEndian.AppendUint64(nil, 0x7000)) // rsp
		return s
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
		{name: "no_entry", says: "no entry at 0x1"},
	} {
		t.Run(fmt.Sprintf("%s at %#x", c.name, c.pc), func(t *testing.T) {
			x := named[c.name]
			if x == nil {
				t.Fatal("there is no such entry")
			}
			if c.pc == 0 {
				c.pc = 0x1008
			}
			state := at(c.pc)
			u := &callingUnit{info: info, unit: x.unit}
			var got string
			err := e.Attach(state).Evaluate(context.Background(), state.Thread(), 0, u.surroundings(), locexpr.DWARF5,
				func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
					u.ev = ev
					l, err := ev.Location(x.Val(dwarf.AttrLocation).([]byte), ctx)
					got = callResult(ctx, l)
					return err
				})
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
			if l.Read(ctx, b, bits) == nil {
				if bits == 16 {
					return fmt.Sprintf("{%d}", int16(binary.LittleEndian.Uint16(b)))
				}
				return fmt.Sprintf("{%d}", int32(binary.LittleEndian.Uint32(b)))
			}
		}
	}
	return l.String()
}
