// SPDX-License-Identifier: Apache-2.0

package code

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// pluginAnswer is the plugin's answer about an object, in addresses of the object. It is set
// with Object.mu held until isOpen, and constant from then on: whoever saw isOpen reads it
// without the lock.
type pluginAnswer struct {
	functions []sdk.Function             // by start
	defaults  *RuleSet                   // of the object
	special   map[*sdk.Function]*RuleSet // default rules of single functions
	tables    []sdk.RowTable
	checksCFI bool // the plugin finds where the code contradicts call frame information
	readsCFI  bool // it has made rows of call frame information
	variables []sdk.Variable
	// registers are the variables that are registers of an intermediate language, by number.
	registers map[uint64][]sdk.Variable
	positions positionMaps
	dialects  dialectList
}

// askPlugin asks the plugin about the object's file.
func (o *Object) askPlugin(ctx context.Context) error {
	o.File.SetRelocations(o.machine.Description.Relocations)
	answer, err := o.machine.Plugin.OpenObject(ctx, objectEngine{o}, o.openRequest())
	if err != nil {
		return err
	}
	for _, p := range answer.Problems {
		o.problem("%s", p)
	}
	if len(answer.Nested) > 0 && o.File.IsForeign() {
		o.problem("%s holds %d code objects, of which the module does not name one, as FILE#%.200s: they are not used",
			o.File.Name(), len(answer.Nested), answer.Nested[0].Name)
	}
	p := pluginAnswer{defaults: o.machine.Defaults, tables: answer.Tables, checksCFI: answer.ChecksCFI, readsCFI: answer.ReadsCFI}
	if p.dialects, err = newDialectList(o.machine, answer); err != nil {
		return err
	}
	if f := o.pe(); f != nil {
		p.defaults = peRules(f)
	} else if answer.DefaultRules != nil {
		p.defaults = NewRuleSet(answer.DefaultRules)
	}
	p.functions = o.placeFunctions(answer.Functions)
	p.positions = o.placePositions(answer.PositionMaps, p.functions)
	p.variables, p.registers = o.placeVariables(answer.Variables)
	p.special = map[*sdk.Function]*RuleSet{}
	for i := range p.functions {
		if f := &p.functions[i]; f.DefaultRules != nil {
			p.special[f] = NewRuleSet(f.DefaultRules)
		}
	}
	o.plugin = p
	return nil
}

func (o *Object) openRequest() *sdk.OpenObjectRequest {
	f := o.File
	req := &sdk.OpenObjectRequest{
		Object:  o.handle(),
		Path:    o.path,
		Machine: f.Machine(),
		OSABI:   f.OSABI(),
		Flags:   f.Flags(),

		Processor: o.processor,
	}
	for _, p := range o.openCompanions() {
		o.problem("%s", p)
	}
	for i, c := range *o.beside.list.Load() {
		req.Companions = append(req.Companions, sdk.Companion{Suffix: c.suffix, Object: o.companionHandle(i)})
	}
	for _, s := range f.SyntheticSections() {
		req.Sections = append(req.Sections, sdk.SectionInfo{
			Name: s.Name, Type: uint32(s.Type), Flags: uint64(s.Flags), Address: s.Address, Size: s.Size,
		})
	}
	req.Symbols = o.watchedSymbols(o.machine)
	return req
}

// sectionBase returns where the section of an answer of the plugin begins. It is false, and a
// problem, where the answer does not name one of several.
func (o *Object) sectionBase(index uint32, kind string) (uint64, bool) {
	if !o.isLaid() {
		return 0, true
	}
	if index == 0 {
		o.problem("%s: %s of the architecture are of no section of the relocatable object: they are not used", o.File.Name(), kind)
		return 0, false
	}
	return o.laid.Sections()[index].Address, true // checked: the plugin was told of it
}

// placeRows appends the rows of a table of the plugin, by address of the object.
func (o *Object) placeRows(rows []cfi.Row, t *sdk.RowTable) []cfi.Row {
	base, ok := o.sectionBase(t.Section, "rows")
	if !ok {
		return rows
	}
	for i := range t.Rows {
		row := t.Rows[i]
		row.Start, row.End = row.Start+base, row.End+base
		if base != 0 {
			row.CFA.Expr = o.machine.placeExpression(row.CFA.Expr, base)
			row.Rules, row.CallSite = o.machine.placeRules(row.Rules, base), o.machine.placeRules(row.CallSite, base)
		}
		rows = append(rows, row)
	}
	return rows
}

// placeRules returns rules with the addresses of their expressions in a section that begins at
// base.
func (m *Machine) placeRules(rules []cfi.RegisterRule, base uint64) []cfi.RegisterRule {
	placed := slices.Clone(rules)
	for i := range placed {
		placed[i].Rule.Expr = m.placeExpression(placed[i].Rule.Expr, base)
	}
	return placed
}

// placeExpression returns an expression of a plugin with its addresses (DW_OP_addr) in a section
// that begins at base.
func (m *Machine) placeExpression(expr []byte, base uint64) []byte {
	if !bytes.Contains(expr, []byte{dw.OpAddr}) {
		return expr
	}
	size := int(m.Description.AddressBits / 8)
	placed := slices.Clone(expr)
	for instruction, err := range locexpr.Decode(expr, locexpr.Canonical, size, m.Order) {
		if err != nil || expr[instruction.Offset] != dw.OpAddr { // it was checked
			continue
		}
		operand, address := placed[instruction.Offset+1:][:size], instruction.Operands[0]+base
		for i := range operand {
			shift := 8 * i
			if m.Order == locexpr.BigEndian {
				shift = 8 * (size - 1 - i)
			}
			operand[i] = byte(address >> shift)
		}
	}
	return placed
}

// placeFunctions returns the functions of the plugin by address of the object, sorted by start.
func (o *Object) placeFunctions(list []sdk.Function) (placed []sdk.Function) {
	for _, f := range list {
		base, ok := o.sectionBase(f.Section, "functions")
		if !ok {
			continue
		}
		f.Start, f.End = f.Start+base, f.End+base
		placed = append(placed, f)
	}
	sort.SliceStable(placed, func(i, j int) bool { return placed[i].Start < placed[j].Start })
	return placed
}

// function returns the plugin's description of the function at an address; nil: there is none.
func (p *pluginAnswer) function(address uint64) *sdk.Function {
	i := sort.Search(len(p.functions), func(i int) bool { return p.functions[i].Start > address })
	if i > 0 && address < p.functions[i-1].End {
		return &p.functions[i-1]
	}
	return nil
}

// startOf returns where a function begins of which a part begins at an address: one that is in
// parts has other functions, such as its subroutines, between them.
func (p *pluginAnswer) startOf(start uint64, name string) uint64 {
	first := sort.Search(len(p.functions), func(i int) bool { return p.functions[i].Start >= start })
	for i := first - 1; i >= 0 && p.functions[i].End == p.functions[i+1].Start; i-- {
		if p.functions[i].Name == name {
			start = p.functions[i].Start
		}
	}
	return start
}

// A PluginVariable is a variable that a plugin describes, at one address. It has no type.
type PluginVariable struct {
	Name string
	Expr []byte // in the canonical dialect
}

// placeVariables returns the plugin's variables by address of the object, and the registers of
// an intermediate language among them.
func (o *Object) placeVariables(list []sdk.Variable) (placed []sdk.Variable, registers map[uint64][]sdk.Variable) {
	for i := range list {
		v := list[i]
		base, ok := o.sectionBase(v.Section, "variables")
		if !ok {
			return placed, registers
		}
		v.Start, v.End = slices.Clone(v.Start), slices.Clone(v.End)
		for k := range v.Start {
			v.Start[k], v.End[k] = v.Start[k]+base, v.End[k]+base
		}
		if v.Register == 0 {
			placed = append(placed, v)
			continue
		}
		if registers == nil {
			registers = map[uint64][]sdk.Variable{}
		}
		registers[v.Register] = append(registers[v.Register], v)
	}
	return placed, registers
}

// PluginVariables returns the variables that the plugin describes at an address of the object,
// in its order.
func (o *Object) PluginVariables(address uint64) (list []PluginVariable) {
	o.mu.Lock()
	placed := o.plugin.variables
	o.mu.Unlock()
	for i := range placed {
		if expr := locationAt(&placed[i], address); expr != nil && len(list) < maxVariables {
			list = append(list, PluginVariable{placed[i].Name, expr})
		}
	}
	return list
}

// PluginRegister returns where a register of an intermediate language is at an address of the
// object: the expression is nil where it has no value there. isOne is false for any other number.
func (o *Object) PluginRegister(number, address uint64) (expr []byte, isOne bool) {
	o.mu.Lock()
	list := o.plugin.registers[number]
	o.mu.Unlock()
	for i := range list {
		if expr = locationAt(&list[i], address); expr != nil {
			return expr, true
		}
	}
	return nil, len(list) > 0
}

// locationAt returns the expression of a variable at an address; nil without one.
func locationAt(v *sdk.Variable, address uint64) []byte {
	for k := range v.Start {
		if v.Start[k] <= address && address < v.End[k] {
			return v.Locations[k]
		}
	}
	return nil
}
