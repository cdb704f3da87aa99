package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxGeneral bounds the registers that are listed for a frame.
const maxGeneral = 1 << 12

// listedRegister is a register that is listed for frames: one of at most 64 bits
// that holds addresses and counts, or says something of each lane.
type listedRegister struct {
	number uint64
	bits   uint32
	lanes  uint32 // only threads of so many have it; 0: all
}

// machine is an architecture as the walk needs it.
type machine struct {
	arch     *plugin.Arch
	desc     *sdk.Description
	compiler *cfi.Compiler
	general  []listedRegister
	defaults *ruleSet
	// returnRow is the row of code of which nothing is known but that it has
	// its return address right below its CFA.
	returnRow *cfi.Row
	// recordRow is such a row of code that keeps its caller's frame pointer in a
	// frame record, keptRow that of code that leaves the frame pointer alone. Both
	// are there where hasRecords.
	recordRow, keptRow *cfi.Row
	record             recordShape
	recordSource       *rowSource // the frame-pointer rule; nil where there is none
	hasRecords         bool
	order              locexpr.ByteOrder
	watched            map[string]bool // names of functions that the plugin wants to be told about
	dialects           sync.Map        // *locexpr.Dialect by name, of those that were asked for
}

func newMachine(a *plugin.Arch) *machine {
	m := &machine{arch: a, desc: a.Description(), watched: map[string]bool{}}
	for _, name := range m.desc.Symbols {
		m.watched[name] = true
	}
	if m.desc.ByteOrder == sdk.BigEndian {
		m.order = locexpr.BigEndian
	}
	for i := range m.desc.Registers {
		r := &m.desc.Registers[i]
		lanes := r.Class == sdk.Mask && r.Lanes > 0 && r.Bits <= 64
		if !general(r.Class, r.Bits) && !lanes {
			continue
		}
		for n := uint32(0); n < r.Count && len(m.general) < maxGeneral; n++ {
			m.general = append(m.general, listedRegister{uint64(r.First) + uint64(n), r.Bits, r.Lanes})
		}
	}
	slices.SortFunc(m.general, func(a, b listedRegister) int { return cmp.Compare(a.number, b.number) })
	m.defaults = newRuleSet(m.desc.DefaultRules)
	m.compiler = newCompiler(m)
	m.returnRow = newReturnRow(m.desc)
	if row := m.desc.FramePointer; row != nil {
		m.recordSource = &rowSource{row: row, by: ByFramePointer, defaults: m.defaults}
	}
	if m.record, m.hasRecords = newRecordShape(m.desc); m.hasRecords {
		saved := cfi.Rule{Kind: cfi.Offset, Offset: m.record.saved}
		m.recordRow = newReturnRow(m.desc, cfi.RegisterRule{Column: uint64(m.desc.FP), Rule: saved})
		m.keptRow = newReturnRow(m.desc, cfi.RegisterRule{Column: uint64(m.desc.FP), Rule: cfi.Rule{Kind: cfi.SameValue}})
	}
	return m
}

func newReturnRow(d *sdk.Description, more ...cfi.RegisterRule) *cfi.Row {
	back := cfi.Rule{Kind: cfi.Offset, Offset: -int64(d.AddressBits+7) / 8}
	rules := append(more, cfi.RegisterRule{Column: uint64(d.PC), Rule: back})
	if d.ReturnAddress != d.PC {
		rules = append(rules, cfi.RegisterRule{Column: uint64(d.ReturnAddress), Rule: back})
	}
	rules = append(rules, cfi.RegisterRule{Column: uint64(d.SP), Rule: cfi.Rule{Kind: cfi.ValOffset}})
	slices.SortFunc(rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
	return &cfi.Row{Rules: rules, ReturnAddress: uint64(d.ReturnAddress)}
}

// registerBits is the size of a register; false where there is none.
func (m *machine) registerBits(number uint64) (uint32, bool) {
	for i := range m.desc.Registers {
		r := &m.desc.Registers[i]
		if number-uint64(r.First) < uint64(r.Count) {
			return r.Bits, true
		}
	}
	return 0, false
}

// executionMask is the register that says which lanes execute, of threads with a
// number of lanes of at most 64.
func (m *machine) executionMask(lanes uint32) (reg uint64, ok bool) {
	for i := range m.desc.Registers {
		if r := &m.desc.Registers[i]; r.Class == sdk.Mask && r.Lanes == lanes && r.Bits == lanes && lanes <= 64 {
			return uint64(r.First), true
		}
	}
	return 0, false
}

// general says whether registers of a class and size hold what a walk needs.
func general(class sdk.RegisterClass, bits uint32) bool {
	switch class {
	case sdk.General, sdk.ProgramCounter, sdk.Flags:
		return bits > 0 && bits <= 64
	}
	return false
}

// newCompiler makes compiled rows answer for what a walk asks in nearly every
// frame, the return address, the stack pointer and the frame pointer, and then
// for what calls preserve: the others have no value in a caller.
func newCompiler(m *machine) *cfi.Compiler {
	var columns []cfi.Column
	add := func(number uint64) {
		info, ok := m.desc.Register(uint32(number))
		if !ok || number > uint64(^uint32(0)) || !general(info.Class, info.Bits) || info.Lanes != 0 ||
			len(columns) == cfi.MaxColumns || slices.ContainsFunc(columns, func(c cfi.Column) bool { return c.Number == number }) {
			return
		}
		columns = append(columns, cfi.Column{Number: number, Bits: info.Bits})
	}
	for _, number := range []uint32{m.desc.ReturnAddress, m.desc.SP, m.desc.FP, m.desc.PC} {
		add(uint64(number))
	}
	for _, r := range m.desc.DefaultRules {
		if r.Rule.Kind == cfi.SameValue {
			add(r.Column)
		}
	}
	c, err := cfi.NewCompiler(m.desc.AddressBits, columns)
	if err != nil { // no description that was checked comes here
		return nil
	}
	return c
}

// ruleSet is default rules: what holds for a column that a row does not
// mention.
type ruleSet struct {
	rules []cfi.RegisterRule // sorted by column
	// other is the rule of columns that are not in rules. It is undefined where
	// nothing is said (DWARF 5, 6.4.1; A.6.4.1: "the default rule for all columns
	// ... is the undefined rule").
	other cfi.RuleKind
}

func newRuleSet(rules []cfi.RegisterRule) *ruleSet {
	return &ruleSet{rules: rules, other: cfi.Undefined}
}

// column is the default rule of a column.
func (s *ruleSet) column(column uint64) cfi.Rule {
	i, found := slices.BinarySearchFunc(s.rules, column, func(r cfi.RegisterRule, c uint64) int { return cmp.Compare(r.Column, c) })
	if found && s.rules[i].Rule.Kind != cfi.Unspecified {
		return s.rules[i].Rule
	}
	return cfi.Rule{Kind: s.other}
}

// rule is the rule of a column in a row, or the default.
func (s *ruleSet) rule(row *cfi.Row, column uint64) cfi.Rule {
	if r, ok := row.Rule(column); ok && r.Kind != cfi.Unspecified {
		return r
	}
	return s.column(column)
}

// dialect is the table of a dialect that the architecture or the project has;
// standard DWARF for no name. It is made once: objects and overrides are many.
func (m *machine) dialect(name string) (*locexpr.Dialect, error) {
	if name == "" {
		return locexpr.DWARF5, nil
	}
	if d, ok := m.dialects.Load(name); ok {
		return d.(*locexpr.Dialect), nil
	}
	for i := range m.desc.Dialects {
		if m.desc.Dialects[i].Name != name {
			continue
		}
		d, err := m.desc.Dialects[i].Table()
		if err != nil {
			return nil, err
		}
		first, _ := m.dialects.LoadOrStore(name, d)
		return first.(*locexpr.Dialect), nil
	}
	if d, ok := locexpr.DialectByName(name); ok {
		return d, nil
	}
	return nil, fmt.Errorf("%s has no dialect %s", m.desc.Name, name)
}
