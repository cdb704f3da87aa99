package engine

import (
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxCore bounds the registers that every frame carries.
const maxCore = 64

// machine is an architecture as the walk needs it.
type machine struct {
	arch *plugin.Arch
	desc *sdk.Description
	// core is how many registers, from number 0 on, every frame carries: those
	// of at most 64 bits that rules are usually about. Others are found on
	// demand, through the chain of rows.
	core     int
	bits     [maxCore]uint32 // of core registers; 0: no such register
	defaults *ruleSet
	order    locexpr.ByteOrder
	watched  map[string]bool // names of functions that the plugin wants to be told about
}

func newMachine(a *plugin.Arch) *machine {
	m := &machine{arch: a, desc: a.Description(), watched: map[string]bool{}}
	for _, name := range m.desc.Symbols {
		m.watched[name] = true
	}
	if m.desc.ByteOrder == sdk.BigEndian {
		m.order = locexpr.BigEndian
	}
	for n := uint32(0); n < maxCore; n++ {
		info, ok := m.desc.Register(n)
		if !ok || info.Bits > 64 {
			continue
		}
		switch info.Class {
		case sdk.General, sdk.ProgramCounter, sdk.Flags:
			m.bits[n] = info.Bits
			m.core = int(n) + 1
		}
	}
	m.defaults = newRuleSet(m, m.desc.DefaultRules)
	return m
}

// ruleSet is default rules: what holds for a column that a row does not
// mention.
type ruleSet struct {
	rules []cfi.RegisterRule // sorted by column
	core  []cfi.Rule         // the same for core registers, by number
}

// undefinedRule is the default where nothing is said (DWARF 5, 6.4.1; A.6.4.1:
// "the default rule for all columns ... is the undefined rule").
var undefinedRule = cfi.Rule{Kind: cfi.Undefined}

func newRuleSet(m *machine, rules []cfi.RegisterRule) *ruleSet {
	s := &ruleSet{rules: rules, core: make([]cfi.Rule, m.core)}
	for n := range s.core {
		s.core[n] = s.search(uint64(n))
	}
	return s
}

func (s *ruleSet) search(column uint64) cfi.Rule {
	i := sort.Search(len(s.rules), func(i int) bool { return s.rules[i].Column >= column })
	if i < len(s.rules) && s.rules[i].Column == column && s.rules[i].Rule.Kind != cfi.Unspecified {
		return s.rules[i].Rule
	}
	return undefinedRule
}

// rule is the rule of a column in a row, or the default.
func (s *ruleSet) rule(row *cfi.Row, column uint64) cfi.Rule {
	if r, ok := row.Rule(column); ok && r.Kind != cfi.Unspecified {
		return r
	}
	if column < uint64(len(s.core)) {
		return s.core[column]
	}
	return s.search(column)
}
