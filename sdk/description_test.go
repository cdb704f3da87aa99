// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// testDescription is a small valid description that uses every field.
func testDescription() *Description {
	return &Description{
		Name: "test", Version: "1.0",
		Recognises:  []Recogniser{{ELFMachine: 0x1234, OSABI: -1, FlagsMask: 0xf0, Flags: 0x10, ELFClass: 2, ELFData: 1}, {NoteOwner: "TEST"}},
		AddressBits: 64,
		Registers: []RegisterRange{
			{First: 0, Count: 8, Names: []string{"r%d"}, Bits: 64},
			{First: 8, Count: 2, Names: []string{"SP", "pc"}, Bits: 64, Class: ProgramCounter},
			{First: 32, Count: 4, Names: []string{"v%d.x"}, Bits: 512, Class: Vector},
			{First: 64, Count: 4, Names: []string{"v%d.x"}, Bits: 1024, Class: Vector},
			{First: 256, Count: 2, Names: []string{"mask", "pair"}, Aliases: []string{"mask_4", "pair_4"}, Bits: 8, Class: Mask, Lanes: 4},
			{First: 258, Count: 2, Names: []string{"mask", "pair"}, Aliases: []string{"mask_8", "pair_8"}, Bits: 8, Class: Mask, Lanes: 8},
			{First: 320, Count: 3, Names: []string{"VGPR%d"}, Aliases: []string{"w%d"}, FirstIndex: 9, Bits: 64, Class: Vector},
		},
		RegisterSets: []RegisterSet{
			{Source: CoreNote, Owner: "CORE", Type: 1, Fields: []RegisterField{
				{Offset: 0, Size: 8, Register: 0}, {Offset: 8, Size: 8, Register: 9},
			}},
			{Source: PerfSample, Fields: []RegisterField{{Offset: 3, Size: 8, Register: 9}}},
		},
		PC: 9, SP: 8, FP: 7, ReturnAddress: 9,
		AddressSpaces: []AddressSpace{{Number: 0, Name: "global", Bits: 64}, {Number: 3, Name: "local", Bits: 32, Scope: GroupScope}},
		DefaultRules:  []cfi.RegisterRule{{Column: 0, Rule: cfi.Rule{Kind: cfi.SameValue}}, {Column: 8, Rule: cfi.Rule{Kind: cfi.ValOffset}}},
		FramePointer: &cfi.Row{
			CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: 7, Offset: 16},
			Rules:         []cfi.RegisterRule{{Column: 7, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -16}}, {Column: 9, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}},
			ReturnAddress: 9,
		},
		Entry: &cfi.Row{
			CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: 8},
			Rules:         []cfi.RegisterRule{{Column: 6, Rule: cfi.Rule{Kind: cfi.SameValue}}},
			ReturnAddress: 6,
		},
		CallDistance: 1, MaxInstruction: 4, StackAlign: 8, SignState: 5, CanonicalBits: 48, TagBits: 8, EntryPushed: 16,
		FloatFormats: []FloatFormat{{Bits: 128, Format: locexpr.FloatExtended}, {Bits: 128, Name: "_Float128", Format: locexpr.FloatBinary128}},
		ThreadLocal:  &ThreadLocal{Pointer: 4, TCBBelow: 8, TCBAbove: 16},
		Relocations:  []Relocation{{Type: 0, Kind: RelocationNone}, {Type: 1, Size: 8, Kind: RelocationAbsolute}},
		Dialects:     []Dialect{{Name: "vendor", Operations: []DialectOperation{{Opcode: 0xe1, Name: "DW_OP_LLVM_offset"}, {Opcode: 0xe9, User: 2, Name: "DW_OP_LLVM_bit_offset"}}}},
		Processors:   []Processor{{Lanes: []uint32{4}}, {Name: "chip1", Lanes: []uint32{8, 4}, FlagsMask: 0xff, Flags: 0x12}},
		ReturnSlot:   &ReturnSlot{Offset: 16},
		CallSites: []CallSite{{
			Code: []byte{0x18, 0, 0x41, 0xe8}, Mask: []byte{0xff, 0, 0xff, 0xff},
			Rules: []cfi.RegisterRule{{Column: 2, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -24}}},
		}},
		FramePointerIsABI: true, FunctionDescriptors: ".opd",
		SignalFrame: &SignalFrame{Address: 304, Trap: 600, TrapRecord: 0x45535201, TrapShift: 26, Traps: []Trap{{Number: 36, Signal: 11}}},
	}
}

func TestDescriptionValidateAcceptsGood(t *testing.T) {
	if err := testDescription().Validate(); err != nil {
		t.Fatal(err)
	}
}

// TestEntryMayHaveAStackOfALane: the CFA of a function that has executed nothing may be in a
// space, or the result of an expression.
func TestEntryMayHaveAStackOfALane(t *testing.T) {
	d := testDescription()
	d.Entry.CFA.Space = 3
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	expr, err := locexpr.Parse("breg8 0; lit3; LLVM_form_aspace_address", locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		t.Fatal(err)
	}
	d.Entry.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: expr}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}

func TestDescriptionValidateNamesTheField(t *testing.T) {
	for field, spoil := range map[string]func(*Description){
		"Name":                                 func(d *Description) { d.Name = "" },
		"Name: \"a b\"":                        func(d *Description) { d.Name = "a b" },
		"Version":                              func(d *Description) { d.Version = "\xff" },
		"ByteOrder":                            func(d *Description) { d.ByteOrder = 2 },
		"AddressBits":                          func(d *Description) { d.AddressBits = 65 },
		"MaxInstruction":                       func(d *Description) { d.MaxInstruction = 1 << 20 },
		"CallDistance":                         func(d *Description) { d.CallDistance = 1 << 20 },
		"StackAlign":                           func(d *Description) { d.StackAlign = 12 },
		"Recognises[0]: none":                  func(d *Description) { d.Recognises[0] = Recogniser{} },
		"Recognises[0].OSABI":                  func(d *Description) { d.Recognises[0].OSABI = -2 },
		"Recognises[0].Flags":                  func(d *Description) { d.Recognises[0].Flags = 1 },
		"Recognises[0].ELFClass":               func(d *Description) { d.Recognises[0].ELFClass = 3 },
		"Recognises[0].ELFData":                func(d *Description) { d.Recognises[0].ELFData = 3 },
		"Recognises[1]: ELFClass and ELFData":  func(d *Description) { d.Recognises[1].ELFData = 2 },
		"Recognises[0].Magic":                  func(d *Description) { d.Recognises[0].Magic = make([]byte, 1000) },
		"Recognises[1].NoteOwner":              func(d *Description) { d.Recognises[1].NoteOwner = strings.Repeat("x", 1000) },
		"Registers[0].Count":                   func(d *Description) { d.Registers[0].Count = 0 },
		"Registers[3]: 4294967295":             func(d *Description) { d.Registers[3].Count = NoRegister },
		"Registers[3]: 65550":                  func(d *Description) { d.Registers[3].Count = 1 << 16 },
		"Registers[0].Bits":                    func(d *Description) { d.Registers[0].Bits = 0 },
		"Registers[0].Class":                   func(d *Description) { d.Registers[0].Class = 99 },
		"Registers[1].Names: 1 names":          func(d *Description) { d.Registers[1].Names = []string{"sp"} },
		"Registers[1].Names[0]: empty":         func(d *Description) { d.Registers[1].Names[0] = "" },
		"Registers[1].Names[1]: \"p c\"":       func(d *Description) { d.Registers[1].Names[1] = "p c" },
		"Registers[1]: numbers 7 to 8":         func(d *Description) { d.Registers[1].First = 7 },
		"Registers[1].Names: \"r3\"":           func(d *Description) { d.Registers[1].Names[0] = "R3" },
		"Registers[1].Names: \"pc\"":           func(d *Description) { d.Registers[1].Names[0] = "PC" },
		"Registers[3].Names: \"v0.x\"":         func(d *Description) { d.Registers[3].Bits = 512 },
		"Registers[6].Aliases: 1 names":        func(d *Description) { d.Registers[6].Aliases = []string{"w"} },
		"Registers[6].Aliases[0]: \"w 0\"":     func(d *Description) { d.Registers[6].Aliases[0] = "w %d" },
		"Registers[6].Aliases: \"vgpr9\"":      func(d *Description) { d.Registers[6].Aliases[0] = "vgpr%d" },
		"Registers[6].Aliases: \"r0\" is also": func(d *Description) { d.Registers[6].Aliases = []string{"R0", "y", "z"} },
		"Registers[6].FirstIndex":              func(d *Description) { d.Registers[6].FirstIndex = NoRegister - 2 },
		"Registers[6].Lanes: 4097":             func(d *Description) { d.Registers[6].Lanes = MaxLanes + 1 },
		"Registers[5].Names: \"mask\"":         func(d *Description) { d.Registers[5].Lanes = 4 },
		"Registers[5].Names: \"mask\" ":        func(d *Description) { d.Registers[5].Lanes = 0 },
		"Registers[5].Names: \"mask\" is":      func(d *Description) { d.Registers[4].Lanes = 0 },
		"Processors: 1025":                     func(d *Description) { d.Processors = make([]Processor, 1025) },
		"Processors[1].Name: \"a b\"":          func(d *Description) { d.Processors[1].Name = "a b" },
		"Processors[1].Name: \"\" is also":     func(d *Description) { d.Processors[1].Name = "" },
		"Processors[2].Name: \"CHIP1\" is also": func(d *Description) {
			d.Processors = append(d.Processors, Processor{Name: "CHIP1", Lanes: []uint32{1}})
		},
		"Processors[1].Flags: 0x112 has bits":    func(d *Description) { d.Processors[1].Flags = 0x112 },
		"Processors[1].Lanes: 0 counts":          func(d *Description) { d.Processors[1].Lanes = nil },
		"Processors[1].Lanes: 65 counts":         func(d *Description) { d.Processors[1].Lanes = make([]uint32, 65) },
		"Processors[1].Lanes[1]: 0":              func(d *Description) { d.Processors[1].Lanes[1] = 0 },
		"Processors[1].Lanes[0]: 4097":           func(d *Description) { d.Processors[1].Lanes[0] = MaxLanes + 1 },
		"Companions[1]: \"dbg\"":                 func(d *Description) { d.Companions = []string{".a", "dbg"} },
		"Companions[0]: empty":                   func(d *Description) { d.Companions = []string{"."} },
		"Companions[0]: \".a.b\"":                func(d *Description) { d.Companions = []string{".a.b"} },
		"Companions[0]: \"a/b\"":                 func(d *Description) { d.Companions = []string{".a/b"} },
		"Companions[0]: \".0123456789abcdef\"":   func(d *Description) { d.Companions = []string{".0123456789abcdef"} },
		"Companions[1]: \".a\" is also":          func(d *Description) { d.Companions = []string{".a", ".a"} },
		"Companions: 9":                          func(d *Description) { d.Companions = make([]string, 9) },
		"PC":                                     func(d *Description) { d.PC = 10 },
		"SP":                                     func(d *Description) { d.SP = 10 },
		"FP":                                     func(d *Description) { d.FP = 10 },
		"ReturnAddress":                          func(d *Description) { d.ReturnAddress = 10 },
		"RegisterSets[0].Source":                 func(d *Description) { d.RegisterSets[0].Source = 9 },
		"RegisterSets[1]: another":               func(d *Description) { d.RegisterSets[0].Source = PerfSample },
		"RegisterSets[0].Fields[1].Register":     func(d *Description) { d.RegisterSets[0].Fields[1].Register = 10 },
		"RegisterSets[0].Fields[1].Size":         func(d *Description) { d.RegisterSets[0].Fields[1].Size = 0 },
		"RegisterSets[0].Fields[1]: bytes":       func(d *Description) { d.RegisterSets[0].Fields[1].Size = 9 },
		"RegisterSets[0].Fields[1]: bytes 42949": func(d *Description) { d.RegisterSets[0].Fields[1].RegisterOffset = NoRegister },
		"RegisterSets[0].Fields[1].RegisterOff":  func(d *Description) { d.RegisterSets[0].Fields[1].Register = 0 },
		"RegisterSets[0].Fields[0].Offset":       func(d *Description) { d.RegisterSets[0].Fields[0].Offset = NoRegister },
		"RegisterSets[1].Fields[0].Offset":       func(d *Description) { d.RegisterSets[1].Fields[0].Offset = 64 },
		"RegisterSets[1].Fields[0].Size": func(d *Description) {
			d.RegisterSets[1].Fields[0].Register, d.RegisterSets[1].Fields[0].Size = 32, 16
		},
		"AddressSpaces[1].Name: \"GLOBAL\"": func(d *Description) { d.AddressSpaces[1].Name = "GLOBAL" },
		"AddressSpaces[1].Number":           func(d *Description) { d.AddressSpaces[1].Number = 0 },
		"AddressSpaces[1].Bits":             func(d *Description) { d.AddressSpaces[1].Bits = 65 },
		"AddressSpaces[0].Bits":             func(d *Description) { d.AddressSpaces[0].Bits = 32 },
		"AddressSpaces[1].Scope":            func(d *Description) { d.AddressSpaces[1].Scope = 9 },
		"DefaultRules[1].Column: 0 after 0": func(d *Description) { d.DefaultRules[1].Column = 0 },
		"DefaultRules[1].Column: 10":        func(d *Description) { d.DefaultRules[1].Column = 10 },
		"DefaultRules[0].Column: 4294967296": func(d *Description) {
			d.DefaultRules[0].Column = 1 << 32
		},
		"DefaultRules[0].Rule.Kind: 99":     func(d *Description) { d.DefaultRules[0].Rule.Kind = 99 },
		"DefaultRules[0].Rule.Kind: a rule": func(d *Description) { d.DefaultRules[0].Rule.Kind = cfi.Unspecified },
		"DefaultRules[0].Rule.Register": func(d *Description) {
			d.DefaultRules[0].Rule = cfi.Rule{Kind: cfi.Register, Register: 99}
		},
		"DefaultRules[0].Rule.Expr": func(d *Description) {
			d.DefaultRules[0].Rule = cfi.Rule{Kind: cfi.Expression, Expr: make([]byte, MaxExpression+1)}
		},
		"DefaultRules[0].Rule.Expr: ": func(d *Description) {
			d.DefaultRules[0].Rule = cfi.Rule{Kind: cfi.Expression, Expr: []byte{0xff}}
		},
		"FramePointer.CFA.Kind: a row": func(d *Description) { d.FramePointer.CFA.Kind = cfi.NoCFA },
		"FramePointer.CFA.Kind: 9":     func(d *Description) { d.FramePointer.CFA.Kind = 9 },
		"FramePointer.CFA.Register":    func(d *Description) { d.FramePointer.CFA.Register = 99 },
		"FramePointer.CFA.Space":       func(d *Description) { d.FramePointer.CFA.Space = 99 },
		"FramePointer.Rules[1].Column": func(d *Description) { d.FramePointer.Rules[1].Column = 99 },
		"FramePointer.ReturnAddress":   func(d *Description) { d.FramePointer.ReturnAddress = 99 },
		"Entry.CFA.Kind: a row":        func(d *Description) { d.Entry.CFA.Kind = cfi.NoCFA },
		"Entry.CFA: register 7":        func(d *Description) { d.Entry.CFA.Register = 7 },
		"Entry.CFA.Space: 9":           func(d *Description) { d.Entry.CFA.Space = 9 },
		"Entry.CFA.Expr":               func(d *Description) { d.Entry.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: []byte{0xff}} },
		"FramePointerIsABI":            func(d *Description) { d.FramePointer = nil },
		"FunctionDescriptors":          func(d *Description) { d.FunctionDescriptors = "\xff" },
		"ReturnSlot: of an":            func(d *Description) { d.SP, d.Entry, d.EntryPushed = NoRegister, nil, 0 },
		"ReturnSlot.Offset: 65537":     func(d *Description) { d.ReturnSlot.Offset = 1<<16 + 1 },
		"ReturnSlot.Offset: 16, but": func(d *Description) {
			d.Entry.Rules[0].Rule = cfi.Rule{Kind: cfi.Offset, Offset: -8}
		},
		"CallSites: 1025":             func(d *Description) { d.CallSites = make([]CallSite, MaxDescriptionList+1) },
		"CallSites[0].Code: 0":        func(d *Description) { d.CallSites[0].Code = nil },
		"CallSites[0].Code[1]":        func(d *Description) { d.CallSites[0].Code[1] = 1 },
		"CallSites[0].Mask: 3":        func(d *Description) { d.CallSites[0].Mask = d.CallSites[0].Mask[:3] },
		"CallSites[0].Mask: no":       func(d *Description) { clear(d.CallSites[0].Mask) },
		"CallSites[0].Rules: none":    func(d *Description) { d.CallSites[0].Rules = nil },
		"CallSites[0].Rules[0].C":     func(d *Description) { d.CallSites[0].Rules[0].Column = 99 },
		"Entry.Rules: no rule":        func(d *Description) { d.Entry.Rules = nil },
		"Entry.Rules: no rule Offset": func(d *Description) { d.Entry.Rules[0].Rule.Kind = cfi.Undefined },
		"Entry.Rules: the return": func(d *Description) {
			d.Entry.ReturnAddress, d.Entry.Rules[0].Column = 9, 9
		},
		"Entry.ReturnAddress":               func(d *Description) { d.Entry.ReturnAddress = 99 },
		"SignState":                         func(d *Description) { d.SignState = 99 },
		"CanonicalBits":                     func(d *Description) { d.CanonicalBits = 65 },
		"TagBits":                           func(d *Description) { d.TagBits = 64 },
		"EntryPushed: 65536":                func(d *Description) { d.EntryPushed = 1 << 16 },
		"FloatFormats[0].Bits":              func(d *Description) { d.FloatFormats[0].Bits = 80 },
		"FloatFormats[0].Format: 0":         func(d *Description) { d.FloatFormats[0].Format = 0 },
		"FloatFormats[0].Format: 9":         func(d *Description) { d.FloatFormats[0].Format = 9 },
		"FloatFormats[1].Name":              func(d *Description) { d.FloatFormats[1].Name = "\xff" },
		"FloatFormats[1]: another":          func(d *Description) { d.FloatFormats[1].Name = "" },
		"Registers[0].Narrow: 4":            func(d *Description) { d.Registers[0].Narrow = 4 },
		"Registers[0].Narrow: registers of": func(d *Description) { d.Registers[0].Narrow, d.Registers[0].Bits = NarrowConverted, 48 },
		"ThreadLocal.Pointer: 99":           func(d *Description) { d.ThreadLocal.Pointer = 99 },
		"ThreadLocal.Pointer: reg":          func(d *Description) { d.ThreadLocal.Pointer = 32 },
		"ThreadLocal.Variant":               func(d *Description) { d.ThreadLocal.Variant = 2 },
		"ThreadLocal.TCBBelow: 131072":      func(d *Description) { d.ThreadLocal.TCBBelow = 1 << 17 },
		"ThreadLocal.TCBBelow: 8":           func(d *Description) { d.ThreadLocal.Variant = ThreadLocalVariantII },
		"Symbols[0]":                        func(d *Description) { d.Symbols = []string{"\xff"} },
		"Relocations[1].Type":               func(d *Description) { d.Relocations[1].Type = 0 },
		"Relocations[1].Kind":               func(d *Description) { d.Relocations[1].Kind = 9 },
		"Relocations[1].Field":              func(d *Description) { d.Relocations[1].Field = 3 },
		"Relocations[1].Size":               func(d *Description) { d.Relocations[1].Size = 3 },
		"Dialects[0].Name":                  func(d *Description) { d.Dialects[0].Name = "" },
		"Dialects[1].Name":                  func(d *Description) { d.Dialects = append(d.Dialects, d.Dialects[0]) },
		"SignalFrame.Trap: 65537":           func(d *Description) { d.SignalFrame.Trap = 1<<16 + 1 },
		"SignalFrame.TrapShift: 64":         func(d *Description) { d.SignalFrame.TrapShift = 64 },
		"SignalFrame.Traps: 1025":           func(d *Description) { d.SignalFrame.Traps = make([]Trap, MaxDescriptionList+1) },
		"Dialects[0].Operations: dialect vendor: opcode 0xe1: no op":        func(d *Description) { d.Dialects[0].Operations[0].Name = "LLVM_offset" },
		"Dialects[0].Name: \"dwarf5\"":                                      func(d *Description) { d.Dialects[0].Name = "dwarf5" },
		"Dialects[0].Operations: dialect vendor: DW_OP_LLVM_offset: opcode": func(d *Description) { d.Dialects[0].Operations[0].Opcode = 3 },
		"Dialects[0].Operations: dialect vendor: opcode 0xe9 0x2 is both":   func(d *Description) { d.Dialects[0].Operations[0] = d.Dialects[0].Operations[1] },
		"Dialects[0].Operations: dialect vendor: opcode 0xe9 is both":       func(d *Description) { d.Dialects[0].Operations[0].Opcode = 0xe9 },
	} {
		d := testDescription()
		spoil(d)
		err := d.Validate()
		if err == nil {
			t.Errorf("%s: accepted", field)
		} else if !strings.HasPrefix(err.Error(), "Description."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestDescriptionRegisterLookups(t *testing.T) {
	d := testDescription()
	for _, c := range []struct {
		number uint32
		want   RegisterInfo
		ok     bool
	}{
		{0, RegisterInfo{Number: 0, Name: "r0", Bits: 64, Class: General}, true},
		{8, RegisterInfo{Number: 8, Name: "SP", Bits: 64, Class: ProgramCounter}, true},
		{35, RegisterInfo{Number: 35, Name: "v3.x", Bits: 512, Class: Vector}, true},
		{10, RegisterInfo{}, false},
		{31, RegisterInfo{}, false},
		{36, RegisterInfo{}, false},
		{NoRegister, RegisterInfo{}, false},
	} {
		got, ok := d.Register(c.number)
		if got != c.want || ok != c.ok {
			t.Errorf("Register(%d): %v %v, want %v %v", c.number, got, ok, c.want, c.ok)
		}
	}
	for _, c := range []struct {
		name   string
		number uint32
		ok     bool
	}{
		{"r0", 0, true}, {"R7", 7, true}, {"sp", 8, true}, {"PC", 9, true}, {"V2.X", 34, true},
		{"r8", 0, false}, {"r07", 0, false}, {"r-1", 0, false}, {"r+1", 0, false}, {"r", 0, false},
		{"", 0, false}, {"v.x", 0, false}, {"v2", 0, false}, {"r99999999999999999999", 0, false},
	} {
		got, ok := d.RegisterByName(c.name)
		if got.Number != c.number || ok != c.ok {
			t.Errorf("RegisterByName(%q): %v %v, want %d %v", c.name, got, ok, c.number, c.ok)
		}
	}
	if d.RegisterSet(CoreNote, "CORE", 1) != &d.RegisterSets[0] || d.RegisterSet(CoreNote, "LINUX", 1) != nil ||
		d.RegisterSet(CoreNote, "CORE", 2) != nil || d.RegisterSet(PerfSample, "x", 5) != &d.RegisterSets[1] ||
		d.RegisterSet(MinidumpContext, "", 1) != nil {
		t.Error("RegisterSet does not find by source, owner and type")
	}
	if s, ok := d.Space(3); !ok || s.Name != "local" {
		t.Errorf("Space(3): %v %v", s, ok)
	}
	if _, ok := d.Space(1); ok {
		t.Error("Space(1) is known")
	}
	d.AddressSpaces = nil
	if s, ok := d.Space(0); !ok || s.Bits != 64 {
		t.Errorf("the default space is not known: %v %v", s, ok)
	}
}

func TestFloatFormatOfTheNameComesFirst(t *testing.T) {
	d := testDescription()
	for name, want := range map[string]locexpr.FloatFormat{"long double": locexpr.FloatExtended, "_Float128": locexpr.FloatBinary128} {
		if got := d.FloatFormat(&locexpr.BaseType{Name: name, Encoding: locexpr.EncodingFloat, Bits: 128}); got != want {
			t.Errorf("%s: %d, expected %d", name, got, want)
		}
		if got := d.FloatFormat(&locexpr.BaseType{Name: "complex " + name, Encoding: locexpr.EncodingComplexFloat, Bits: 256}); got != want {
			t.Errorf("complex %s: %d, expected %d", name, got, want)
		}
		if got := d.FloatFormat(&locexpr.BaseType{Name: name, Encoding: locexpr.EncodingFloat, Bits: 64}); got != locexpr.FloatBySize {
			t.Errorf("%s of 64 bits: %d", name, got)
		}
	}
}
