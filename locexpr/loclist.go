// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
)

// ListFormat is the encoding of the entries of location lists.
type ListFormat uint8

// The formats of location lists, by the section that has them.
const (
	// DebugLoclists is .debug_loclists and .debug_loclists.dwo of DWARF 5
	// (DWARF 5, 7.7.3).
	DebugLoclists ListFormat = iota
	// DebugLoc is .debug_loc of DWARF 2 to 4 (DWARF 4, 7.7.3).
	DebugLoc
	// DebugLocDWO is .debug_loc.dwo, which GCC and clang write for split DWARF 4: its opcodes
	// DW_LLE_GNU_* have the numbers of DWARF 5, but the length of a range has 4 bytes, and
	// the length of an expression 2.
	DebugLocDWO
)

// ListEntryKind is the kind of a location list entry (DWARF 5, 7.7.3, Table
// 7.10).
type ListEntryKind uint8

// The kinds of entries. Entries of .debug_loc that have a range are ListOffsetPair.
const (
	ListEnd             ListEntryKind = iota // DW_LLE_end_of_list
	ListBaseAddressx                         // DW_LLE_base_addressx
	ListStartxEndx                           // DW_LLE_startx_endx
	ListStartxLength                         // DW_LLE_startx_length
	ListOffsetPair                           // DW_LLE_offset_pair
	ListDefaultLocation                      // DW_LLE_default_location
	ListBaseAddress                          // DW_LLE_base_address
	ListStartEnd                             // DW_LLE_start_end
	ListStartLength                          // DW_LLE_start_length
	ListViewPair                             // DW_LLE_GNU_view_pair: GCC's view numbers of the next entry
)

var listKindNames = [...]string{
	"DW_LLE_end_of_list", "DW_LLE_base_addressx", "DW_LLE_startx_endx", "DW_LLE_startx_length", "DW_LLE_offset_pair",
	"DW_LLE_default_location", "DW_LLE_base_address", "DW_LLE_start_end", "DW_LLE_start_length", "DW_LLE_GNU_view_pair",
}

// String returns the name, as "DW_LLE_offset_pair".
func (k ListEntryKind) String() string {
	if int(k) < len(listKindNames) {
		return listKindNames[k]
	}
	return fmt.Sprintf("DW_LLE_0x%02x", uint8(k))
}

// listOperands are the operands of the entries of each kind, in DWARF 5. Address indexes are
// ULEB. hasExpr means that an expression follows.
var listOperands = [...]struct {
	operands [2]OperandKind
	hasExpr  bool
}{
	ListEnd:             {},
	ListBaseAddressx:    {operands: [2]OperandKind{ULEB}},
	ListStartxEndx:      {operands: [2]OperandKind{ULEB, ULEB}, hasExpr: true},
	ListStartxLength:    {operands: [2]OperandKind{ULEB, ULEB}, hasExpr: true},
	ListOffsetPair:      {operands: [2]OperandKind{ULEB, ULEB}, hasExpr: true},
	ListDefaultLocation: {hasExpr: true},
	ListBaseAddress:     {operands: [2]OperandKind{Address}},
	ListStartEnd:        {operands: [2]OperandKind{Address, Address}, hasExpr: true},
	ListStartLength:     {operands: [2]OperandKind{Address, ULEB}, hasExpr: true},
	ListViewPair:        {operands: [2]OperandKind{ULEB, ULEB}},
}

// Limits of a list.
const (
	maxListEntries = 1 << 20 // in one list
	maxListMatches = 256     // that match one program location
)

// LocationLists are the location lists of a section (DWARF 5, 2.6.2; A.2.5.5).
type LocationLists struct {
	Section     string // its name, for errors
	Data        []byte
	Format      ListFormat
	AddressSize int // bytes, 1 to 8; 0 is 8
	OffsetSize  int // bytes of an offset in the table of .debug_loclists: 4 or 8 by the DWARF format; 0 is 4
	Order       ByteOrder
	// Budget is the number of entries that may be read in all, of lists that share it, and
	// becomes less; nil: each list has its own limit. It keeps many references to one long
	// list from being read over and over.
	Budget *int64
}

// ListEntry is an entry of a location list that has an expression.
type ListEntry struct {
	Offset     uint64 // of the entry in the section
	Kind       ListEntryKind
	Start, End uint64 // of the range, the base address applied; both 0 of a default entry
	IsDead     bool   // the linker dropped the code that the range was for
	Expr       []byte // part of the section
}

// IsDefault reports whether the entry matches where no range of the list does.
func (e *ListEntry) IsDefault() bool { return e.Kind == ListDefaultLocation }

// Covers reports whether the address is in the entry's range. A range of no
// bytes covers none.
func (e *ListEntry) Covers(pc uint64) bool {
	return !e.IsDefault() && !e.IsDead && e.Start <= pc && pc < e.End
}

// ListError is an error of a location list, or of an expression in it.
type ListError struct {
	Kind    ErrorKind
	Section string
	Offset  uint64 // of the entry in the section
	Err     error
}

// Error returns the place and the reason.
func (e *ListError) Error() string {
	return fmt.Sprintf("%s: offset 0x%x: %v", e.Section, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *ListError) Unwrap() error {
	if e.Kind == IllFormed {
		return illFormed{e.Err} // so that kindOf finds it
	}
	return e.Err
}

// Entries reads the list at an offset of the section, up to its end, and yields
// the entries that have an expression. base is the base address of the unit;
// entries of the list may change it for those after them. addrx returns an
// address of the unit's part of .debug_addr; it may be nil where there is none.
// An error, which is a *ListError, ends the list, except for a range that ends before it
// starts: Intel's compiler writes such ones among others.
func (s *LocationLists) Entries(offset, base uint64, addrx func(index uint64) (uint64, error)) iter.Seq2[ListEntry, error] {
	return func(yield func(ListEntry, error) bool) {
		r := listReader{LocationLists: s, base: base, addrx: addrx}
		if err := r.start(offset); err != nil {
			yield(ListEntry{}, err)
			return
		}
		for range maxListEntries {
			var e ListEntry
			if err := r.next(&e); err != nil {
				if !yield(ListEntry{}, err) || !errors.Is(err, errInverted) {
					return
				}
				continue
			}
			if s.overspends() {
				yield(ListEntry{}, r.fail(Evaluation, fmt.Errorf("%w: the lists are read more often than their size makes believable", ErrLimit)))
				return
			}
			if e.Kind == ListEnd {
				return
			}
			if listOperands[e.Kind].hasExpr && !yield(e, nil) {
				return
			}
		}
		yield(ListEntry{}, r.fail(Evaluation, fmt.Errorf("%w: more than %d entries", ErrLimit, maxListEntries)))
	}
}

// overspends takes an entry from the budget, and reports whether there was none left.
func (s *LocationLists) overspends() bool {
	if s.Budget == nil {
		return false
	}
	*s.Budget--
	return *s.Budget < 0
}

// At returns the expressions of the entries of a list that match a program
// location (A.2.5.5): all those whose range covers pc, since ranges may overlap,
// and default entries where no range does. A range that ends before it starts is an error
// where nothing else matches. pc is an address as the list has
// them, without a load bias; of a frame that is not the top one it is that of
// the call, not the return address. See Entries for the rest. Where nothing
// matches, and there is no error, the object is not available.
func (s *LocationLists) At(offset, pc, base uint64, addrx func(index uint64) (uint64, error)) ([][]byte, error) {
	matches, _, err := s.matches(offset, pc, base, addrx)
	if err != nil || len(matches) == 0 {
		return nil, err
	}
	exprs := make([][]byte, len(matches))
	for i := range matches {
		exprs[i] = matches[i].Expr
	}
	return exprs, nil
}

// matches also returns the number of entries that it read.
func (s *LocationLists) matches(offset, pc, base uint64, addrx func(uint64) (uint64, error)) (matches []ListEntry, read int, err error) {
	var covering, defaults []ListEntry
	var inverted error
	for e, err := range s.Entries(offset, base, addrx) {
		read++
		switch {
		case errors.Is(err, errInverted):
			inverted = cmp.Or(inverted, err)
			continue
		case err != nil:
			return nil, read, err
		}
		switch {
		case e.IsDefault():
			defaults = append(defaults, e)
		case e.Covers(pc):
			covering = append(covering, e)
		}
		if len(covering) > maxListMatches || len(defaults) > maxListMatches {
			return nil, read, &ListError{Evaluation, s.Section, e.Offset, fmt.Errorf("%w: more than %d entries match", ErrLimit, maxListMatches)}
		}
	}
	switch {
	case len(covering) > 0:
		return covering, read, nil
	case len(defaults) > 0:
		return defaults, read, nil
	}
	return nil, read, inverted
}

// EvaluateList evaluates the location list at an offset of the section (A.2.5.5): each entry
// that matches the current program location is evaluated as a location description, without
// an object and with an empty stack, and the result has the places of them all. Where no
// entry matches it is the undefined location.
//
// Addresses in the list are addresses of the code object: Evaluator.LoadBias is taken off the
// program location before they are compared. base is the base address of the unit, without
// that bias. An error is a *ListError.
func (e *Evaluator) EvaluateList(ctx context.Context, s *LocationLists, offset, base uint64, c Context) (Location, error) {
	pc, err := programLocation(c)
	if err != nil {
		return Location{}, &ListError{kindOf(err), s.Section, offset, err}
	}
	// The list is an evaluation of its own, so that its entries share the
	// limit on steps.
	defer e.leave()
	ev, err := e.run(ctx, nil, c, nil)
	if err != nil {
		return Location{}, &ListError{kindOf(err), s.Section, offset, err}
	}
	matches, read, err := s.matches(offset, pc-e.LoadBias, base, func(index uint64) (uint64, error) { return addrx(c, index) })
	if err != nil {
		return Location{}, err
	}
	if err := ev.charge(read / listEntriesPerStep); err != nil {
		return Location{}, &ListError{kindOf(err), s.Section, offset, err}
	}
	locations := make([]Location, len(matches))
	for i := range matches {
		if locations[i], err = e.listed(ctx, matches[i].Expr, c); err == nil {
			err = ev.charge(locations[i].NumPlaces())
		}
		if err != nil {
			return Location{}, &ListError{kindOf(err), s.Section, matches[i].Offset, err}
		}
	}
	return UnionLocation(locations...), nil
}

// listed evaluates the expression of an entry of a list, without an object.
func (e *Evaluator) listed(ctx context.Context, expr []byte, c Context) (l Location, err error) {
	defer e.leave()
	ev, err := e.begin(ctx, expr, c, nil)
	if err != nil {
		return l, err
	}
	ev.isObjectless = true
	if err = ev.execute(); err == nil {
		err = ev.resultLocation(&l)
	}
	return l, err
}

// LocationContext has a current program location, for location lists.
type LocationContext interface {
	// ProgramLocation returns the current program location.
	ProgramLocation() (uint64, error)
}

func programLocation(c Context) (uint64, error) {
	location, ok := c.(LocationContext)
	if !ok {
		return 0, noContext("program location")
	}
	return location.ProgramLocation()
}
