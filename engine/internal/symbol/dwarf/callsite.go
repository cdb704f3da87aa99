// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"iter"
	"slices"

	"github.com/unwindd/unwindd/internal/dw"
)

// CallSite is a DW_TAG_call_site (DWARF 5, 3.4) or a DW_TAG_GNU_call_site, which gcc and
// clang write for DWARF 4. The zero CallSite is none.
type CallSite struct{ Entry }

// callAttributes are the attributes of call sites and their parameters. GNU's attributes
// have the same meanings and other numbers.
type callAttributes struct{ returnPC, tailCall, callee, target, parameter, value, data dw.Attr }

var (
	standardCall = callAttributes{
		dw.AttrCallReturnPC, dw.AttrCallTailCall, dw.AttrCallOrigin, dw.AttrCallTarget, dw.AttrCallParameter, dw.AttrCallValue, dw.AttrCallDataValue,
	}
	gnuCall = callAttributes{
		dw.AttrLowPC, dw.AttrGNUTailCall, dw.AttrAbstractOrigin, dw.AttrGNUCallSiteTarget, dw.AttrAbstractOrigin, dw.AttrGNUCallSiteValue, dw.AttrGNUCallSiteDataValue,
	}
)

func (e Entry) callAttributes() *callAttributes {
	if e.Tag() == dw.TagGNUCallSite || e.Tag() == dw.TagGNUCallSiteParameter {
		return &gnuCall
	}
	return &standardCall
}

// IsTailCall reports whether the call leaves the function for good: its callee returns to
// the function's own caller.
func (s CallSite) IsTailCall() (bool, error) { return s.hasFlag(s.callAttributes().tailCall) }

// Callee is the called function; the zero Entry where it is unknown.
func (s CallSite) Callee() (Entry, error) { return s.Reference(s.callAttributes().callee) }

// Target is the expression of the called address.
func (s CallSite) Target() (l Location, ok bool, err error) {
	return s.Location(s.callAttributes().target)
}

// CallParameter is an argument of a call: a DW_TAG_call_site_parameter (DWARF 5, 3.4.2) or
// a DW_TAG_GNU_call_site_parameter.
type CallParameter struct{ Entry }

// Parameters are the arguments that a call site describes.
func (s CallSite) Parameters() iter.Seq2[CallParameter, error] {
	return func(yield func(CallParameter, error) bool) {
		for c, err := range s.Children() {
			if err == nil && c.Tag() != dw.TagCallSiteParameter && c.Tag() != dw.TagGNUCallSiteParameter {
				continue
			}
			if !yield(CallParameter{c}, err) || err != nil {
				return
			}
		}
	}
}

// Parameter is the formal parameter; the zero Entry where it is unknown.
func (p CallParameter) Parameter() (Entry, error) {
	return p.Reference(p.callAttributes().parameter)
}

// Value is the expression of the argument, in the frame of the caller.
func (p CallParameter) Value() (l Location, ok bool, err error) {
	return p.Location(p.callAttributes().value)
}

// DataValue is the expression of the contents of the memory that the argument points to.
func (p CallParameter) DataValue() (l Location, ok bool, err error) {
	return p.Location(p.callAttributes().data)
}

// hasFlag reports whether the entry itself has a flag that is set.
func (e Entry) hasFlag(attr dw.Attr) (bool, error) {
	v, ok, err := e.own(attr)
	return ok && v.n != 0, err
}

// CallSite returns the call site of a call by its return address, an address of the object;
// the zero CallSite where there is none. Tail calls do not return: the address after one,
// which gcc writes, may belong to another call's function.
func (r *Reader) CallSite(returnPC uint64) (site CallSite, err error) {
	if returnPC == 0 {
		return CallSite{}, nil
	}
	err = r.protect(func() error {
		b, f, err := r.describing(returnPC - 1)
		if err != nil || f == nil {
			return err
		}
		site, err = b.callSiteAt(b.offset+uint64(f.offset), returnPC)
		return err
	})
	return site, err
}

// callSiteAt returns the call site with a return address in a function, given by the offset
// of its entry.
func (b *body) callSiteAt(function, returnPC uint64) (site CallSite, err error) {
	err = b.callSites(function, func(s CallSite) (bool, error) {
		pc, ok, err := s.Address(s.callAttributes().returnPC)
		if err != nil || !ok || pc != returnPC {
			return true, nil //nolint:nilerr // an address that cannot be read does not match
		}
		isTail, err := s.IsTailCall()
		if err == nil && !isTail {
			site = s
		}
		return isTail, err
	})
	return site, err
}

// TailCalls are the tail calls of a function with code, including those in its blocks and
// inlined calls. areAll is false where the function may have others: nothing tells that all
// its calls, or all its tail calls, are described (DWARF 5, 3.3.1.6).
func (e Entry) TailCalls() (list []CallSite, areAll bool, err error) {
	for _, attr := range []dw.Attr{
		dw.AttrCallAllCalls, dw.AttrCallAllTailCalls, dw.AttrCallAllSourceCalls, dw.AttrGNUAllCallSites, dw.AttrGNUAllTailCallSites, dw.AttrGNUAllSourceCallSites,
	} {
		n, ok, err := e.Number(attr)
		if err != nil {
			return nil, false, err
		}
		areAll = areAll || ok && n != 0
	}
	err = e.b.callSites(e.off, func(s CallSite) (bool, error) {
		isTail, err := s.IsTailCall()
		if isTail {
			list = append(list, s)
		}
		return true, err
	})
	return list, areAll, err
}

// callSites calls f with the call sites of a function, not of nested functions,
// until it returns false.
func (b *body) callSites(function uint64, f func(CallSite) (bool, error)) error {
	entries := b.descend(function)
	for entries.next() {
		switch entries.entry.Tag() {
		case dw.TagCallSite, dw.TagGNUCallSite:
			if more, err := f(CallSite{entries.entry}); !more || err != nil {
				return err
			}
		case dw.TagSubprogram:
			if entries.depth > 0 {
				entries.skip()
			}
		}
	}
	return entries.err
}

// Is reports whether two entries are the same one.
func (e Entry) Is(other Entry) bool {
	return !e.IsZero() && !other.IsZero() && e.b.unit == other.b.unit && e.off == other.off
}

// Root is the entry that all instances and completions of an entry lead to: the entry
// itself where it is none.
func (e Entry) Root() (Entry, error) {
	for range maxOrigins {
		next, err := e.Origin()
		if err != nil || next.IsZero() {
			return e, err
		}
		e = next
	}
	return e, e.b.wrong(e.off, "the entry is an instance of instances more than %d deep", maxOrigins)
}

// SameFunction reports whether two entries describe one function: they have the same root,
// or other units know both by the same name.
func SameFunction(a, b Entry) (bool, error) {
	x, err := a.Root()
	if err != nil {
		return false, err
	}
	y, err := b.Root()
	if err != nil || x.Is(y) {
		return err == nil, err
	}
	name := a.LinkageName()
	return name != "" && (name == b.LinkageName() || name == y.LinkageName()), nil
}

// LinkageName is the symbol name of a function that other units may call: its
// DW_AT_linkage_name, or without one its name, as in C. It is "" for other functions.
func (e Entry) LinkageName() string {
	if n, ok, err := e.Number(dw.AttrExternal); err != nil || !ok || n == 0 {
		return ""
	}
	for _, attr := range []dw.Attr{dw.AttrLinkageName, dw.AttrMIPSLinkageName} {
		if name, ok, err := e.Text(attr); ok && err == nil {
			return name
		}
	}
	return e.Name()
}

// EntryPC is the entry address of a function with code: an address of the object.
func (e Entry) EntryPC() (pc uint64, ok bool, err error) {
	if !e.abbrev.hasCode {
		return 0, false, nil
	}
	c := e.b.cursor(e.off)
	c.uleb()
	var x extent
	if e.b.readExtent(&c, e.abbrev, &x); c.failed {
		return 0, false, e.b.wrong(e.off, "the values of the entry do not end in the unit")
	}
	list, err := e.spans()
	if err != nil {
		return 0, false, err
	}
	pc, ok = e.b.entryPC(&x, list)
	return pc, ok, nil
}

// maxNamedBytes bounds the debug information that is searched for functions of other units
// by their linkage names.
const maxNamedBytes = 1 << 30

// Instances are the functions with code that have the entry's root: an inlined function's
// own code, and the copies that gcc makes for some of the calls (*.constprop.0, *.part.0).
// They are looked for in the units of the root and of near, an entry that refers to it:
// link-time optimization puts them there.
func (e Entry) Instances(near Entry) (list []Entry, err error) {
	root, err := e.Root()
	if err != nil {
		return nil, err
	}
	if list, err = root.b.instancesOf(root, nil); err == nil && near.b != root.b {
		list, err = near.b.instancesOf(root, list)
	}
	return list, err
}

// instancesOf appends the instances of one unit.
func (b *body) instancesOf(root Entry, list []Entry) ([]Entry, error) {
	found, err := b.instances.get(b.findInstances)
	if err != nil {
		return nil, err
	}
	for _, off := range found[entryKey{root.b.unit, root.off}] {
		e, err := b.entryAt(off)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// findInstances finds the functions of the unit that have code by their roots.
func (b *body) findInstances() (map[entryKey][]uint64, error) {
	x, err := b.all.get(func() (*functions, error) { return b.findFunctions(true) })
	if err != nil {
		return nil, err
	}
	found := make(map[entryKey][]uint64, len(x.list))
	for i := range x.list {
		off := b.offset + uint64(x.list[i].offset)
		e, err := b.entryAt(off)
		if err != nil {
			return nil, err
		}
		root, err := e.Root()
		if err != nil {
			return nil, err
		}
		k := entryKey{root.b.unit, root.off}
		found[k] = append(found[k], off)
	}
	return found, nil
}

// Bodies are the functions with code that the callee of a call site may be: the instances
// of its entry, and functions of other units with its linkage name. There are none of a
// function that the object does not have. areAll is false where there is too much debug
// information to look for others.
func (r *Reader) Bodies(site CallSite, callee Entry) (list []Entry, areAll bool, err error) {
	err = r.protect(func() error {
		if list, err = callee.Instances(site.Entry); err != nil {
			return err
		}
		root, err := callee.Root()
		if err != nil {
			return err
		}
		name := root.LinkageName()
		if areAll = name == "" || r.infoSize() <= maxNamedBytes; name == "" || !areAll {
			return nil
		}
		named, err := r.linkage.get(r.findLinkage)
		if err != nil {
			return err
		}
		for _, k := range named[name] {
			e, err := k.entry()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(list, e.Is) {
				list = append(list, e)
			}
		}
		return nil
	})
	return list, areAll, err
}

// findLinkage finds the functions with code of all units by their linkage names.
func (r *Reader) findLinkage() (map[string][]entryKey, error) {
	return r.linkageOf((*functions).offsets)
}

func (x *functions) offsets() []uint32 {
	list := make([]uint32, len(x.list))
	for i := range x.list {
		list[i] = x.list[i].offset
	}
	return list
}

// linkageOf finds the functions that some selects in each unit by their linkage names. A
// unit that cannot be read is a problem.
func (r *Reader) linkageOf(some func(*functions) []uint32) (map[string][]entryKey, error) {
	named := map[string][]entryKey{}
	for _, u := range r.everyUnit() {
		if u.isType() {
			continue
		}
		if err := r.addLinkage(named, u, some); err != nil {
			r.failedUnit(u, err)
		}
	}
	return named, nil
}

func (r *Reader) addLinkage(named map[string][]entryKey, u *unit, some func(*functions) []uint32) error {
	b, err := u.open()
	if err != nil {
		return err
	}
	if b, err = r.splitOf(b); err != nil {
		return err
	}
	x, err := b.functions.get(func() (*functions, error) { return b.findFunctions(false) })
	if err != nil {
		return err
	}
	for _, offset := range some(x) {
		off := b.offset + uint64(offset)
		e, err := b.entryAt(off)
		if err != nil {
			return err
		}
		if name := e.LinkageName(); name != "" {
			if named[name] == nil {
				r.main.addKept(len(name) + 64)
			}
			r.main.addKept(sizeOf[entryKey](1))
			named[name] = append(named[name], entryKey{b.unit, off})
		}
	}
	return nil
}
