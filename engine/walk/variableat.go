// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// This file names variables by the address of an object that they are, or that is within them.

// internals begin the parts of a lock: the name of a lock ends before the first of them.
var internals = []string{".__", "._M_", ".inner.futex", ".inner.state"}

// wholeTypes are locks whose parts have names like other members.
var wholeTypes = map[string]bool{"sync.Mutex": true, "sync.RWMutex": true, "sync.Cond": true}

// outer returns a path of members without the parts of a lock.
func outer(path string) string {
	for _, begin := range internals {
		if i := strings.Index(path, begin); i >= 0 {
			path = path[:i]
		}
	}
	return path
}

// GlobalAt names the variable of a module at an address, with the member there: "accounts[1].lock",
// or, without debug information, "accounts+0x28"; "" where there is none.
func (p *Process) GlobalAt(address uint64) (name string) {
	_ = object.Guard(func() error { // an unreadable one has no name
		m, inObject := p.moduleAt(address)
		if m == nil {
			return nil
		}
		symbol, offset := m.Code.DataSymbol(inObject)
		if symbol == "" {
			return nil
		}
		name = symbol
		if typ := globalType(m, symbol, inObject-offset); typ != nil {
			name += outer(memberAt(plain(typ), offset, wholeTypes, maxMemberDepth))
		} else if offset > 0 {
			name += fmt.Sprintf("+%#x", offset)
		}
		return nil
	})
	return name
}

// maxSearched bounds the debug information that is searched for the type of a variable: all of it
// is read.
const maxSearched = 64 << 20

// globalType returns the type of the variable of a name at an address of its object; nil where
// that is not known.
func globalType(m *code.Module, name string, address uint64) *dwarf.Type {
	d := m.Code.DWARF()
	if d == nil || m.Code.DebugInfoSize() > maxSearched {
		return nil
	}
	entries, _ := d.Globals(name)
	for _, e := range entries {
		v := code.NewScopedVariable(e)
		if v.Location != nil && isAddress(v.Location, address) {
			return v.Type
		}
	}
	return nil
}

// isAddress reports whether a location is a fixed address of a module (DW_OP_addr, DW_OP_addrx).
func isAddress(l *dwarf.Location, address uint64) bool {
	switch expr := l.Expr; {
	case len(expr) == 9 && expr[0] == dw.OpAddr:
		return binary.LittleEndian.Uint64(expr[1:]) == address || binary.BigEndian.Uint64(expr[1:]) == address
	case len(expr) > 1 && expr[0] == dw.OpAddrx:
		index, n := binary.Uvarint(expr[1:])
		found, err := l.Unit.Addrx(index)
		return n == len(expr)-1 && err == nil && found == address
	}
	return false
}

// NameOf names the object at an address by a variable of the frame that it is, or is within, or
// that points to it: "queue.lock", "this->lock", "to.m". isOwn reports whether the variables of a
// function are looked at, by its index among the functions of the frame. "" means that there is
// none.
func (a Activation) NameOf(ctx context.Context, address uint64, isOwn func(level int) bool) (name string) {
	_ = object.Guard(func() error { // an unreadable one has no name
		f := a.frame
		if f.module == nil {
			return nil
		}
		scope := f.module.Code.VariablesIn(f.lookup, f.function())
		if scope == nil {
			return nil
		}
		u := a.unitContext(scope.Function)
		for i := range scope.List {
			v := &scope.List[i]
			if v.IsShadowed || v.Type == nil || v.Problem != nil || v.Name == "" || !isOwn(v.Level) {
				continue
			}
			if name = u.nameBy(ctx, v, address); name != "" {
				return nil
			}
		}
		return nil
	})
	return name
}

// nameBy is NameOf by one variable.
func (u *unitContext) nameBy(ctx context.Context, v *code.ScopedVariable, address uint64) string {
	l, err := u.locateHere(ctx, v)
	if err != nil || l.NumPlaces() != 1 {
		return ""
	}
	typ := plain(v.Type)
	if p := l.Place(0); typ != nil && p.Storage == locexpr.Memory && p.Space == locexpr.DefaultSpace && address-p.Address < sizeOf(typ) {
		return v.Name + outer(memberAt(typ, address-p.Address, wholeTypes, maxMemberDepth))
	}
	target := pointee(v.Type)
	machine := u.frame.walker.machine
	b := make([]byte, (machine.Description.AddressBits+7)/8)
	if target == nil || l.Object(uint64(8*len(b)), machine.Order).Read(ctx, u.context(v.Unit()), b, uint64(8*len(b))) != nil {
		return ""
	}
	offset := address - integer(b, machine.Order)
	if offset >= max(sizeOf(target), 1) {
		return ""
	}
	isPointer := typ.Kind == dwarf.KindPointer
	member := strings.TrimPrefix(outer(memberAt(target, offset, wholeTypes, maxMemberDepth)), ".")
	switch {
	case member == "" && isPointer:
		return "*" + v.Name
	case member == "":
		return v.Name
	case member[0] == '[' && isPointer:
		return "(*" + v.Name + ")" + member
	case member[0] == '[':
		return v.Name + member
	case isPointer:
		return v.Name + "->" + member
	}
	return v.Name + "." + member
}
