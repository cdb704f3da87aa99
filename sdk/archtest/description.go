// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// description requests the description and stores it when it is valid.
func (v *verifier) description() {
	ctx, cancel := context.WithTimeout(v.ctx, v.deadline)
	defer cancel()
	d, err := guarded(ctx, v.deadline+grace, v.arch.Describe)
	if err != nil {
		if !v.wrong("Describe", "the architecture", err) && v.ctx.Err() == nil {
			v.find(Error, "Describe answers data that is constant; it has no reason to fail.", "Describe: %v", err)
		}
		return
	}
	if d == nil {
		v.find(Error, "Return a *sdk.Description.", "Describe: neither a description nor an error")
		return
	}
	if err := d.Validate(); err != nil {
		v.find(Error, "The engine refuses the plugin. Mend the field that the detail names.", "%v", err)
		return
	}
	v.desc = d
	for _, w := range []struct {
		when        bool
		detail, fix string
	}{
		{len(d.Recognises) == 0, "Recognises is empty: no code object and no dump is this architecture's",
			"Name the ELF machine, the magic bytes or the owner of notes."},
		{len(d.Registers) == 0, "Registers is empty", "List the registers by their DWARF numbers."},
		{d.PC == sdk.NoRegister, "PC is no register: BindThreads must be written, and name the PC itself", "Set PC where a register holds it."},
		{d.ReturnAddress == sdk.NoRegister, "ReturnAddress is no register", "Set ReturnAddress to the usual return-address column."},
		{d.CallDistance == 0, "CallDistance is 0: rows and lines are looked up at the return address itself, which may belong to the next function",
			"Set CallDistance to 1, unless return addresses are those of calls."},
		{d.MaxInstruction == 0, "MaxInstruction is 0: the code before a return address cannot be asked for", "Set MaxInstruction to the size of the longest instruction in bytes."},
		{d.Entry == nil && d.SP != sdk.NoRegister && d.StackAlign != 0, "Entry is nil: no caller is found of a call through a bad pointer",
			"Set Entry to the row of a function that has executed nothing: where the call puts its return address."},
		{d.StackAlign == 0, "StackAlign is 0: stacks without any other information are not scanned", "Set StackAlign to the bytes between words of the stack."},
	} {
		if w.when {
			v.find(Warning, w.fix, "Description.%s", w.detail)
		}
	}
}

// constant requests the description again: the engine requests it once for good.
func (v *verifier) constant() {
	again, ok := ask(v.session, "Describe", "the architecture, again",
		v.arch.Describe, func(d *sdk.Description) error { return d.Validate() })
	if !ok {
		return
	}
	if field := Difference(v.desc, again); field != "" {
		v.find(Error, "What is different from one code object or thread to the next belongs in OpenObject or BindThreads.",
			"Describe: two calls gave different descriptions, first in %s", field)
	}
}

// Difference names the first field in which two descriptions differ; "" where they are
// the same.
func Difference(a, b *sdk.Description) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return difference("Description", reflect.ValueOf(*a), reflect.ValueOf(*b))
}

// difference names the first field in which two values differ.
func difference(field string, a, b reflect.Value) string {
	if a.Kind() == reflect.Struct {
		for i := range a.NumField() {
			if x, y := a.Field(i), b.Field(i); !reflect.DeepEqual(x.Interface(), y.Interface()) {
				return difference(field+"."+a.Type().Field(i).Name, x, y)
			}
		}
	}
	return field
}

// defaultRules checks the rules for registers that a row does not mention.
func (v *verifier) defaultRules() {
	d := v.desc
	if len(d.DefaultRules) == 0 {
		v.find(Warning, "Say which registers the calling convention preserves (SameValue), and that the stack pointer is the CFA (ValOffset 0) where it is.",
			"Description.DefaultRules is empty: a register that a row does not mention is unknown in the caller")
		return
	}
	for _, r := range d.DefaultRules {
		if r.Column == uint64(d.SP) {
			return
		}
	}
	if d.SP != sdk.NoRegister {
		info, _ := d.Register(d.SP)
		v.find(Warning, "Nearly all rows leave the stack pointer out, because it is the CFA in the caller: say so with ValOffset 0.",
			"Description.DefaultRules has no rule for the stack pointer, %s", info.Name)
	}
}

// registerSets decodes records of every length that matters.
func (v *verifier) registerSets() {
	pc := len(v.desc.RegisterSets) == 0 || v.desc.PC == sdk.NoRegister
	for i := range v.desc.RegisterSets {
		set := &v.desc.RegisterSets[i]
		if len(set.Fields) == 0 {
			v.find(Warning, "Leave the set out, or list its registers.", "Description.RegisterSets[%d] has no fields", i)
			continue
		}
		v.overlaps(i)
		var decoded sdk.Registers
		if set.Source == sdk.PerfSample {
			set.DecodeSample(^uint64(0), make([]byte, 8*64), &decoded)
		} else {
			var end uint64
			for _, f := range set.Fields {
				end = max(end, uint64(f.Offset)+uint64(f.Size))
			}
			set.Decode(make([]byte, end), &decoded)
		}
		if _, ok := decoded.Get(v.desc.PC); ok {
			pc = true
		}
		for j, f := range set.Fields {
			if value, ok := decoded.Get(f.Register); f.RegisterOffset == 0 && (!ok || len(value) < int(f.Size)) {
				v.find(Error, "Give the field the offset and size that it has in the record.",
					"Description.RegisterSets[%d].Fields[%d]: register %d is not decoded from a whole record", i, j, f.Register)
			}
			info, _ := v.desc.Register(f.Register)
			if value, ok := decoded.Get(f.Register); ok && len(value) < int(info.Bits+7)/8 && info.Class <= sdk.ProgramCounter {
				v.find(Warning, "Make the field, or the fields of its pieces, as large as the register, or the register as large as what is recorded.",
					"Description.RegisterSets[%d]: register %s has %d bits, its record %d", i, info.Name, info.Bits, 8*len(value))
			}
		}
	}
	if !pc {
		info, _ := v.desc.Register(v.desc.PC)
		v.find(Warning, "Without the PC no stack can be walked: add its field.", "Description.RegisterSets: none holds the PC, %s", info.Name)
	}
}

// overlaps looks for fields of a register set that overlap: bytes that two registers are
// read from.
func (v *verifier) overlaps(set int) {
	fields := slices.Clone(v.desc.RegisterSets[set].Fields)
	end := func(f sdk.RegisterField) uint64 { return uint64(f.Offset) + uint64(f.Size) }
	if v.desc.RegisterSets[set].Source == sdk.PerfSample {
		end = func(f sdk.RegisterField) uint64 { return uint64(f.Offset) + 1 }
	}
	slices.SortStableFunc(fields, func(a, b sdk.RegisterField) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(fields); i++ {
		a, b := fields[i-1], fields[i]
		if a.Register == b.Register || uint64(b.Offset) >= end(a) {
			continue
		}
		one, _ := v.desc.Register(a.Register)
		other, _ := v.desc.Register(b.Register)
		v.find(Warning, "Give each field the offset and size that it has in the record: what a core holds of one register is shown as the other, too.",
			"Description.RegisterSets[%d]: %s at %d and %s at %d overlap", set, one.Name, a.Offset, other.Name, b.Offset)
		return
	}
}

// lanes checks that threads with a number of lanes have one execution mask: a register of
// class Mask with a bit for each lane.
func (v *verifier) lanes() {
	masks := map[uint32]string{}
	for i := range v.desc.Registers {
		r := &v.desc.Registers[i]
		if r.Class != sdk.Mask || r.Lanes == 0 {
			continue
		}
		info, _ := v.desc.Register(r.First)
		if r.Bits != r.Lanes {
			v.find(Warning, "Make the execution mask as wide as the threads have lanes, a bit for each, or give the registers another class.",
				"Description.Registers[%d]: the mask %s of threads with %d lanes has %d bits", i, info.Name, r.Lanes, r.Bits)
		}
		if other, ok := masks[r.Lanes]; ok || r.Count > 1 {
			if !ok {
				last, _ := v.desc.Register(r.First + 1)
				other = last.Name
			}
			v.find(Warning, "Leave Lanes of what is no execution mask 0, or give it another class: which lanes execute is read from one register.",
				"Description.Registers[%d]: threads with %d lanes have two execution masks, %s and %s", i, r.Lanes, other, info.Name)
		}
		masks[r.Lanes] = info.Name
	}
}
