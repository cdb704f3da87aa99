// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// Validate checks a description, and returns an error for the first invalid number,
// range, name, size or expression, with its field.
func (d *Description) Validate() error {
	for _, check := range []func(*Description) error{
		(*Description).checkScalars,
		(*Description).checkRecognisers,
		(*Description).checkRegisters,
		(*Description).checkRegisterRoles,
		(*Description).checkRegisterSets,
		(*Description).checkAddressSpaces,
		(*Description).checkAddressClasses,
		(*Description).checkRules,
		(*Description).checkReturns,
		(*Description).checkCallSites,
		(*Description).checkThreadLocal,
		(*Description).checkFloatFormats,
		(*Description).checkSignalFrame,
		(*Description).checkRelocations,
		(*Description).checkDialects,
		(*Description).checkProcessors,
		(*Description).checkCompanions,
	} {
		if err := check(d); err != nil {
			return fmt.Errorf("Description.%w", err)
		}
	}
	return nil
}

func (d *Description) checkScalars() error {
	if err := checkIdentifier("Name", d.Name); err != nil {
		return err
	}
	if err := checkText("Version", d.Version, MaxName); err != nil {
		return err
	}
	for _, list := range []struct {
		field  string
		length int
	}{
		{"Recognises", len(d.Recognises)},
		{"Registers", len(d.Registers)},
		{"RegisterSets", len(d.RegisterSets)},
		{"AddressSpaces", len(d.AddressSpaces)},
		{"AddressClasses", len(d.AddressClasses)},
		{"Relocations", len(d.Relocations)},
		{"Dialects", len(d.Dialects)},
		{"Processors", len(d.Processors)},
		{"Symbols", len(d.Symbols)},
		{"FloatFormats", len(d.FloatFormats)},
		{"CallSites", len(d.CallSites)},
	} {
		if list.length > MaxDescriptionList {
			return fmt.Errorf("%s: %d, expected at most %d", list.field, list.length, MaxDescriptionList)
		}
	}
	if err := checkTexts("Symbols", d.Symbols); err != nil {
		return err
	}
	switch {
	case d.ByteOrder > BigEndian:
		return fmt.Errorf("ByteOrder: %d is not a byte order", d.ByteOrder)
	case d.AddressBits < 8 || d.AddressBits > 64 || d.AddressBits%8 != 0:
		return fmt.Errorf("AddressBits: %d, expected whole bytes, 8 to 64 bits", d.AddressBits)
	case d.MaxInstruction > MaxInstructionBytes:
		return fmt.Errorf("MaxInstruction: %d, expected at most %d bytes", d.MaxInstruction, MaxInstructionBytes)
	case d.CallDistance > MaxInstructionBytes:
		return fmt.Errorf("CallDistance: %d, expected at most %d bytes", d.CallDistance, MaxInstructionBytes)
	case d.CanonicalBits > d.AddressBits:
		return fmt.Errorf("CanonicalBits: %d, expected at most AddressBits, %d", d.CanonicalBits, d.AddressBits)
	case d.TagBits >= d.AddressBits:
		return fmt.Errorf("TagBits: %d, expected less than AddressBits, %d", d.TagBits, d.AddressBits)
	case d.EntryPushed > maxEntryPushed:
		return fmt.Errorf("EntryPushed: %d, expected at most %d bytes", d.EntryPushed, maxEntryPushed)
	case d.EntryPushed != 0 && d.SP == NoRegister:
		return fmt.Errorf("EntryPushed: %d, of an architecture without a stack pointer", d.EntryPushed)
	case d.StackAlign&(d.StackAlign-1) != 0 || d.StackAlign > 1<<12:
		return fmt.Errorf("StackAlign: %d, expected a power of two of at most 4096 bytes", d.StackAlign)
	}
	return nil
}

// maxEntryPushed bounds the bytes that are pushed before a function is entered.
const maxEntryPushed = 1 << 12

func (d *Description) checkFloatFormats() error {
	for i, f := range d.FloatFormats {
		field := fmt.Sprintf("FloatFormats[%d]", i)
		if err := checkText(field+".Name", f.Name, MaxText); err != nil {
			return err
		}
		switch {
		case f.Format == locexpr.FloatBySize || f.Format > locexpr.FloatDoubleDouble:
			return fmt.Errorf("%s.Format: %d is not a format", field, f.Format)
		case f.Bits != 128:
			return fmt.Errorf("%s.Bits: %d, expected 128: the formats of other sizes are known", field, f.Bits)
		case slices.ContainsFunc(d.FloatFormats[:i], func(o FloatFormat) bool { return o.Bits == f.Bits && o.Name == f.Name }):
			return fmt.Errorf("%s: another has the same size and name", field)
		}
	}
	return nil
}

func (d *Description) checkRecognisers() error {
	for i := range d.Recognises {
		r := &d.Recognises[i]
		switch {
		case r.ELFMachine == 0 && len(r.Magic) == 0 && r.NoteOwner == "":
			return fmt.Errorf("Recognises[%d]: none of ELFMachine, Magic and NoteOwner is set, so it matches every file", i)
		case r.OSABI < -1 || r.OSABI > 255:
			return fmt.Errorf("Recognises[%d].OSABI: %d, expected -1 (any) to 255", i, r.OSABI)
		case r.Flags&^r.FlagsMask != 0:
			return fmt.Errorf("Recognises[%d].Flags: %#x has bits outside FlagsMask %#x, so it never matches", i, r.Flags, r.FlagsMask)
		case r.ELFClass > uint8(elf.ELFCLASS64):
			return fmt.Errorf("Recognises[%d].ELFClass: %d, expected 0 (any), 1 (32-bit) or 2 (64-bit)", i, r.ELFClass)
		case r.ELFData > uint8(elf.ELFDATA2MSB):
			return fmt.Errorf("Recognises[%d].ELFData: %d, expected 0 (any), 1 (little-endian) or 2 (big-endian)", i, r.ELFData)
		case r.ELFMachine == 0 && (r.ELFClass != 0 || r.ELFData != 0):
			return fmt.Errorf("Recognises[%d]: ELFClass and ELFData are set and ELFMachine is not; set all of them", i)
		case len(r.Magic) > MaxName:
			return fmt.Errorf("Recognises[%d].Magic: %d bytes, expected at most %d", i, len(r.Magic), MaxName)
		}
		if err := checkText(fmt.Sprintf("Recognises[%d].NoteOwner", i), r.NoteOwner, MaxName); err != nil {
			return err
		}
	}
	return nil
}

func (d *Description) checkRegisters() error {
	names := make(map[string][]int) // ranges with a register of that name
	var total uint64
	for i := range d.Registers {
		r := &d.Registers[i]
		field := fmt.Sprintf("Registers[%d]", i)
		total += uint64(r.Count)
		switch {
		case r.Count == 0:
			return fmt.Errorf("%s.Count: 0, expected at least one register", field)
		case uint64(r.First)+uint64(r.Count) > uint64(NoRegister):
			return fmt.Errorf("%s: %d registers from %d do not fit in 32-bit numbers", field, r.Count, r.First)
		case uint64(r.FirstIndex)+uint64(r.Count) > uint64(NoRegister):
			return fmt.Errorf("%s.FirstIndex: %d, expected indices of 32 bits for %d registers", field, r.FirstIndex, r.Count)
		case total > MaxRegisters:
			return fmt.Errorf("%s: %d registers so far, expected at most %d", field, total, MaxRegisters)
		case r.Bits == 0 || r.Bits > MaxRegisterBits:
			return fmt.Errorf("%s.Bits: %d, expected 1 to %d", field, r.Bits, MaxRegisterBits)
		case r.Class > Control:
			return fmt.Errorf("%s.Class: %d is not a register class", field, r.Class)
		case r.Lanes > MaxLanes:
			return fmt.Errorf("%s.Lanes: %d, expected at most %d", field, r.Lanes, MaxLanes)
		case r.Narrow > NarrowConverted:
			return fmt.Errorf("%s.Narrow: %d is no way to have smaller objects", field, r.Narrow)
		case r.Narrow == NarrowConverted && r.Bits != 64 && r.Bits != 80:
			return fmt.Errorf("%s.Narrow: registers of %d bits, expected 64 or 80 for a format of floating point numbers", field, r.Bits)
		}
		if err := r.checkNames(field+".Names", r.Names); err != nil {
			return err
		}
		if len(r.Aliases) > 0 {
			if err := r.checkNames(field+".Aliases", r.Aliases); err != nil {
				return err
			}
		}
		for j := range i {
			o := &d.Registers[j]
			if r.First < o.First+o.Count && o.First < r.First+r.Count {
				return fmt.Errorf("%s: numbers %d to %d overlap those of Registers[%d]", field, r.First, r.First+r.Count-1, j)
			}
		}
		for _, list := range []struct {
			field string
			names []string
		}{{".Names", r.Names}, {".Aliases", r.Aliases}} {
			if len(list.names) == 0 {
				continue
			}
			for j := range r.Count {
				name := strings.ToLower(r.nameIn(list.names, j))
				for _, k := range names[name] {
					if k == i || !d.Registers[k].mayShareNames(r) {
						return fmt.Errorf("%s%s: %q is also a name of Registers[%d]", field, list.field, name, k)
					}
				}
				names[name] = append(names[name], i)
			}
		}
	}
	return nil
}

// checkNames checks the names or aliases of r.
func (r *RegisterRange) checkNames(field string, names []string) error {
	_, isPattern := namePattern(names)
	if !isPattern && uint64(len(names)) != uint64(r.Count) {
		return fmt.Errorf("%s: %d names for %d registers, expected one each, or one with %%d", field, len(names), r.Count)
	}
	for j, name := range names {
		if isPattern {
			name = strings.Replace(name, "%d", "0", 1)
		}
		if err := checkIdentifier(fmt.Sprintf("%s[%d]", field, j), name); err != nil {
			return err
		}
	}
	return nil
}

// mayShareNames reports whether r and o may be one register file at two widths.
func (r *RegisterRange) mayShareNames(o *RegisterRange) bool {
	return r.Bits != o.Bits || r.Lanes != 0 && o.Lanes != 0 && r.Lanes != o.Lanes
}

func (d *Description) checkRegisterRoles() error {
	for _, role := range []struct {
		field  string
		number uint32
	}{{"PC", d.PC}, {"SP", d.SP}, {"FP", d.FP}, {"ReturnAddress", d.ReturnAddress}} {
		if role.number == NoRegister {
			continue
		}
		if _, ok := d.Register(role.number); !ok {
			return fmt.Errorf("%s: %d is the number of no register", role.field, role.number)
		}
	}
	if _, ok := d.Register(d.SignState); !ok && d.SignState != 0 {
		return fmt.Errorf("SignState: %d is the number of no register", d.SignState)
	}
	return nil
}

// maxRecord bounds the records of register sets.
const maxRecord = 1 << 24

func (d *Description) checkRegisterSets() error {
	for i := range d.RegisterSets {
		s := &d.RegisterSets[i]
		field := fmt.Sprintf("RegisterSets[%d]", i)
		if s.Source > MinidumpContext {
			return fmt.Errorf("%s.Source: %d is not a source", field, s.Source)
		}
		if err := checkText(field+".Owner", s.Owner, MaxName); err != nil {
			return err
		}
		if d.RegisterSet(s.Source, s.Owner, s.Type) != s {
			return fmt.Errorf("%s: another set has the same source, owner and type", field)
		}
		if len(s.Fields) > MaxRegisters {
			return fmt.Errorf("%s.Fields: %d, expected at most %d", field, len(s.Fields), MaxRegisters)
		}
		ends := make(map[uint32]uint64)
		for j := range s.Fields {
			f := &s.Fields[j]
			field := fmt.Sprintf("%s.Fields[%d]", field, j)
			info, ok := d.Register(f.Register)
			size := (uint64(info.Bits) + 7) / 8
			end := uint64(f.RegisterOffset) + uint64(f.Size)
			switch {
			case !ok:
				return fmt.Errorf("%s.Register: %d is the number of no register", field, f.Register)
			case f.Size == 0:
				return fmt.Errorf("%s.Size: 0, expected at least one byte", field)
			case end > size:
				return fmt.Errorf("%s: bytes %d to %d of register %s, which has %d", field, f.RegisterOffset, end, info.Name, size)
			case uint64(f.RegisterOffset) < ends[f.Register]:
				return fmt.Errorf("%s.RegisterOffset: %d, expected at least %d, where the piece before ends", field, f.RegisterOffset, ends[f.Register])
			case s.Source == PerfSample && f.Offset > 63:
				return fmt.Errorf("%s.Offset: %d, expected a bit of sample_regs_user, 0 to 63", field, f.Offset)
			case s.Source == PerfSample && (f.Size > 8 || d.ByteOrder == BigEndian && f.Size != 8):
				return fmt.Errorf("%s.Size: %d, expected the 8 bytes of a sampled register", field, f.Size)
			case uint64(f.Offset)+uint64(f.Size) > maxRecord:
				return fmt.Errorf("%s.Offset: %d, expected a record of at most %d bytes", field, f.Offset, maxRecord)
			}
			ends[f.Register] = end
		}
	}
	return nil
}

func (d *Description) checkAddressSpaces() error {
	names := make(map[string]int)
	numbers := make(map[locexpr.AddressSpace]int)
	for i := range d.AddressSpaces {
		s := &d.AddressSpaces[i]
		field := fmt.Sprintf("AddressSpaces[%d]", i)
		if err := checkIdentifier(field+".Name", s.Name); err != nil {
			return err
		}
		name := strings.ToLower(s.Name)
		if j, ok := names[name]; ok {
			return fmt.Errorf("%s.Name: %q is also the name of AddressSpaces[%d]", field, s.Name, j)
		}
		if j, ok := numbers[s.Number]; ok {
			return fmt.Errorf("%s.Number: %d is also the number of AddressSpaces[%d]", field, s.Number, j)
		}
		names[name], numbers[s.Number] = i, i
		switch {
		case s.Bits == 0 || s.Bits > 64:
			return fmt.Errorf("%s.Bits: %d, expected 1 to 64", field, s.Bits)
		case s.Number == locexpr.DefaultSpace && s.Bits != d.AddressBits:
			return fmt.Errorf("%s.Bits: %d, expected AddressBits, %d, for the default space", field, s.Bits, d.AddressBits)
		case s.Scope > LaneScope:
			return fmt.Errorf("%s.Scope: %d is not a scope", field, s.Scope)
		}
	}
	return nil
}

func (d *Description) checkAddressClasses() error {
	for i, c := range d.AddressClasses {
		field := fmt.Sprintf("AddressClasses[%d]", i)
		_, ok := d.Space(c.Space)
		switch {
		case c.Class == 0:
			return fmt.Errorf("%s.Class: 0, expected a class", field)
		case slices.ContainsFunc(d.AddressClasses[:i], func(o AddressClass) bool { return o.Class == c.Class }):
			return fmt.Errorf("%s.Class: another entry has the same class, %d", field, c.Class)
		case !ok:
			return fmt.Errorf("%s.Space: %d is the number of no address space", field, c.Space)
		}
	}
	return nil
}

func (d *Description) checkRules() error {
	c := newChecker(d)
	if err := c.rules("DefaultRules", d.DefaultRules); err != nil {
		return err
	}
	for _, r := range []struct {
		field string
		row   *cfi.Row
	}{{"FramePointer", d.FramePointer}, {"Entry", d.Entry}} {
		if r.row == nil {
			continue
		}
		if err := c.row(r.row); err != nil {
			return fmt.Errorf("%s.%w", r.field, err)
		}
	}
	return d.checkEntry()
}

// checkEntry checks that the return address of Entry is where the call put it: nothing was
// saved yet.
func (d *Description) checkEntry() error {
	row := d.Entry
	if row == nil {
		return nil
	}
	if row.CFA.Kind == cfi.CFARegister && row.CFA.Register != uint64(d.SP) {
		return fmt.Errorf("Entry.CFA: register %d, expected the stack pointer and an offset, or an expression", row.CFA.Register)
	}
	back, _ := row.Rule(row.ReturnAddress)
	if !slices.Contains([]cfi.RuleKind{cfi.Offset, cfi.Register, cfi.SameValue}, back.Kind) {
		return fmt.Errorf("Entry.Rules: no rule Offset, Register or SameValue of the return address, column %d", row.ReturnAddress)
	}
	if back.Kind == cfi.SameValue && row.ReturnAddress == uint64(d.PC) {
		return fmt.Errorf("Entry.Rules: the return address, column %d, is the PC itself", row.ReturnAddress)
	}
	return nil
}

// maxReturnSlot bounds the distance of a return address from the caller's stack pointer.
const maxReturnSlot = 1 << 16

// checkReturns checks where return addresses and their frames are found.
func (d *Description) checkReturns() error {
	switch s := d.ReturnSlot; {
	case d.FramePointerIsABI && d.FramePointer == nil:
		return fmt.Errorf("FramePointerIsABI: set without FramePointer, the row of such frames")
	case s == nil:
		return nil
	case d.SP == NoRegister:
		return fmt.Errorf("ReturnSlot: of an architecture without a stack pointer")
	case s.Offset < -maxReturnSlot || s.Offset > maxReturnSlot:
		return fmt.Errorf("ReturnSlot.Offset: %d, expected -%d to %d bytes", s.Offset, maxReturnSlot, maxReturnSlot)
	case s.Offset == -int64(d.AddressBits/8):
		return nil // as after a call that pushes it
	}
	if row := d.Entry; row != nil {
		if back, _ := row.Rule(row.ReturnAddress); back.Kind == cfi.Offset {
			return fmt.Errorf("ReturnSlot.Offset: %d, but by Entry a call pushes the return address below the stack pointer of its caller", d.ReturnSlot.Offset)
		}
	}
	return nil
}

// checkCallSites checks the instructions that callers return to, and their rules.
func (d *Description) checkCallSites() error {
	c := newChecker(d)
	for i := range d.CallSites {
		s := &d.CallSites[i]
		field := fmt.Sprintf("CallSites[%d]", i)
		switch {
		case len(s.Code) == 0 || len(s.Code) > MaxInstructionBytes:
			return fmt.Errorf("%s.Code: %d bytes, expected 1 to %d", field, len(s.Code), MaxInstructionBytes)
		case len(s.Mask) != len(s.Code):
			return fmt.Errorf("%s.Mask: %d bytes, expected %d, as many as Code", field, len(s.Mask), len(s.Code))
		case !slices.ContainsFunc(s.Mask, func(b byte) bool { return b != 0 }):
			return fmt.Errorf("%s.Mask: no bit is set, so it matches every instruction", field)
		case len(s.Rules) == 0:
			return fmt.Errorf("%s.Rules: none, so it has no effect", field)
		}
		for j, b := range s.Code {
			if b&^s.Mask[j] != 0 {
				return fmt.Errorf("%s.Code[%d]: %#x has bits outside the mask %#x, so it never matches", field, j, b, s.Mask[j])
			}
		}
		if err := c.rules(field+".Rules", s.Rules); err != nil {
			return err
		}
	}
	return nil
}

// maxTCB bounds the bytes of a thread control block.
const maxTCB = 1 << 16

func (d *Description) checkThreadLocal() error {
	s := d.ThreadLocal
	if s == nil {
		return nil
	}
	info, ok := d.Register(s.Pointer)
	switch {
	case !ok:
		return fmt.Errorf("ThreadLocal.Pointer: %d is the number of no register", s.Pointer)
	case info.Bits > 64:
		return fmt.Errorf("ThreadLocal.Pointer: register %s has %d bits, expected at most 64", info.Name, info.Bits)
	case s.Variant > ThreadLocalVariantII:
		return fmt.Errorf("ThreadLocal.Variant: %d is not a variant", s.Variant)
	case s.TCBBelow > maxTCB || s.TCBAbove > maxTCB:
		return fmt.Errorf("ThreadLocal.TCBBelow: %d and %d bytes of a thread control block, expected at most %d", s.TCBBelow, s.TCBAbove, maxTCB)
	case s.Variant == ThreadLocalVariantII && (s.TCBBelow != 0 || s.TCBAbove != 0):
		return fmt.Errorf("ThreadLocal.TCBBelow: %d and %d bytes of a thread control block, expected 0 in variant II", s.TCBBelow, s.TCBAbove)
	}
	return nil
}

// maxSignalFrame bounds the offsets of a SignalFrame.
const maxSignalFrame = 1 << 16

func (d *Description) checkSignalFrame() error {
	s := d.SignalFrame
	if s == nil {
		return nil
	}
	for _, offset := range []struct {
		field string
		value uint32
	}{{"Info", s.Info}, {"PC", s.PC}, {"Address", s.Address}, {"Trap", s.Trap}} {
		if offset.value > maxSignalFrame {
			return fmt.Errorf("SignalFrame.%s: %d, expected at most %d bytes", offset.field, offset.value, maxSignalFrame)
		}
	}
	switch {
	case s.TrapShift > 63:
		return fmt.Errorf("SignalFrame.TrapShift: %d, expected at most 63", s.TrapShift)
	case len(s.Traps) > MaxDescriptionList:
		return fmt.Errorf("SignalFrame.Traps: %d, expected at most %d", len(s.Traps), MaxDescriptionList)
	}
	return nil
}

func (d *Description) checkRelocations() error {
	seen := make(map[uint32]int)
	for i := range d.Relocations {
		r := &d.Relocations[i]
		if j, ok := seen[r.Type]; ok {
			return fmt.Errorf("Relocations[%d].Type: %d is also that of Relocations[%d]", i, r.Type, j)
		}
		seen[r.Type] = i
		switch {
		case r.Kind > RelocationRelativePA:
			return fmt.Errorf("Relocations[%d].Kind: %d is not a kind", i, r.Kind)
		case r.Field > FieldULEB128:
			return fmt.Errorf("Relocations[%d].Field: %d is not a form of fields", i, r.Field)
		case r.Kind == RelocationNone, r.Field == FieldULEB128 && r.Size == 0:
		case !slices.Contains([]uint8{1, 2, 4, 8}, r.Size):
			return fmt.Errorf("Relocations[%d].Size: %d, expected 1, 2, 4 or 8 bytes", i, r.Size)
		}
	}
	return nil
}

func (d *Description) checkDialects() error {
	seen := make(map[string]int)
	for i := range d.Dialects {
		dialect := &d.Dialects[i]
		field := fmt.Sprintf("Dialects[%d]", i)
		if err := checkIdentifier(field+".Name", dialect.Name); err != nil {
			return err
		}
		if j, ok := seen[dialect.Name]; ok {
			return fmt.Errorf("%s.Name: %q is also the name of Dialects[%d]", field, dialect.Name, j)
		}
		if err := dialect.checkBuiltIn(field); err != nil {
			return err
		}
		seen[dialect.Name] = i
		if len(dialect.Operations) > MaxDescriptionList {
			return fmt.Errorf("%s.Operations: %d, expected at most %d", field, len(dialect.Operations), MaxDescriptionList)
		}
		if _, err := dialect.Table(); err != nil {
			return fmt.Errorf("%s.Operations: %w", field, err)
		}
	}
	return nil
}

// checkBuiltIn checks that a dialect with the name of a built-in one has the same
// operations. The standard dialects cannot be declared.
func (d *Dialect) checkBuiltIn(field string) error {
	for _, builtIn := range locexpr.Dialects {
		if !strings.EqualFold(d.Name, builtIn.Name) {
			continue
		}
		if builtIn == locexpr.DWARF5 || builtIn == locexpr.Canonical {
			return fmt.Errorf("%s.Name: %q is the name of a dialect that is built in", field, d.Name)
		}
		for i, o := range d.Operations {
			_, e, ok := builtIn.Lookup(o.Name)
			if !ok || e.Opcode != o.Opcode || e.User != o.User {
				return fmt.Errorf("%s.Operations[%d]: %s at %#x %#x, expected what the dialect %s that is built in has",
					field, i, o.Name, o.Opcode, o.User, builtIn.Name)
			}
		}
	}
	return nil
}

// maxLaneCounts is how many lane counts a processor may have.
const maxLaneCounts = 64

func (d *Description) checkProcessors() error {
	seen := make(map[string]int)
	for i := range d.Processors {
		p := &d.Processors[i]
		field := fmt.Sprintf("Processors[%d]", i)
		if p.Name != "" {
			if err := checkIdentifier(field+".Name", p.Name); err != nil {
				return err
			}
		}
		name := strings.ToLower(p.Name)
		if j, ok := seen[name]; ok {
			return fmt.Errorf("%s.Name: %q is also the name of Processors[%d]", field, p.Name, j)
		}
		seen[name] = i
		if p.Flags&^p.FlagsMask != 0 {
			return fmt.Errorf("%s.Flags: %#x has bits that are not in the mask %#x", field, p.Flags, p.FlagsMask)
		}
		if len(p.Lanes) == 0 || len(p.Lanes) > maxLaneCounts {
			return fmt.Errorf("%s.Lanes: %d counts, expected 1 to %d", field, len(p.Lanes), maxLaneCounts)
		}
		for j, n := range p.Lanes {
			if n == 0 || n > MaxLanes {
				return fmt.Errorf("%s.Lanes[%d]: %d, expected 1 to %d", field, j, n, MaxLanes)
			}
		}
	}
	return nil
}

func (d *Description) checkCompanions() error {
	if len(d.Companions) > MaxCompanions {
		return fmt.Errorf("Companions: %d, expected at most %d", len(d.Companions), MaxCompanions)
	}
	for i, suffix := range d.Companions {
		field := fmt.Sprintf("Companions[%d]", i)
		name, ok := strings.CutPrefix(suffix, ".")
		if !ok || strings.Contains(name, ".") || len(suffix) > MaxSuffix {
			return fmt.Errorf("%s: %.64q, expected a dot and a name without one, at most %d bytes", field, suffix, MaxSuffix)
		}
		if err := checkIdentifier(field, name); err != nil {
			return err
		}
		if slices.Contains(d.Companions[:i], suffix) {
			return fmt.Errorf("%s: %q is also one before it", field, suffix)
		}
	}
	return nil
}
