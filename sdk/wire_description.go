// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"math"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeDescription(d *Description) *pb.Description {
	p := &pb.Description{
		Name: d.Name, Version: d.Version,
		Recognises: column(d.Recognises, func(r *Recogniser) *pb.Recogniser {
			return &pb.Recogniser{
				ElfMachine: uint32(r.ELFMachine), OsAbi: r.OSABI,
				FlagsMask: r.FlagsMask, Flags: r.Flags,
				Magic: r.Magic, NoteOwner: r.NoteOwner,
				ElfClass: uint32(r.ELFClass), ElfData: uint32(r.ELFData),
			}
		}),
		ByteOrder:   pb.ByteOrder(d.ByteOrder),
		AddressBits: d.AddressBits,
		Registers: column(d.Registers, func(r *RegisterRange) *pb.RegisterRange {
			return &pb.RegisterRange{
				First: r.First, Count: r.Count, Names: r.Names,
				Bits: r.Bits, Class: pb.RegisterClass(r.Class),
				FirstIndex: r.FirstIndex, Aliases: r.Aliases, Lanes: r.Lanes,
				Narrow: pb.Narrow(r.Narrow),
			}
		}),
		RegisterSets: column(d.RegisterSets, encodeRegisterSet),
		Pc:           d.PC, Sp: d.SP, Fp: d.FP, ReturnAddress: d.ReturnAddress,
		AddressSpaces: column(d.AddressSpaces, func(s *AddressSpace) *pb.AddressSpace {
			return &pb.AddressSpace{Number: uint64(s.Number), Name: s.Name, Bits: s.Bits, Scope: pb.SpaceScope(s.Scope)}
		}),
		DefaultRules:   encodeRules(d.DefaultRules),
		CallDistance:   d.CallDistance,
		MaxInstruction: d.MaxInstruction,
		StackAlign:     d.StackAlign,
		SignState:      d.SignState,
		CanonicalBits:  d.CanonicalBits,
		TagBits:        d.TagBits,
		EntryPushed:    d.EntryPushed,
		FloatFormats: column(d.FloatFormats, func(f *FloatFormat) *pb.FloatFormat {
			return &pb.FloatFormat{Bits: f.Bits, Name: f.Name, Encoding: pb.FloatEncoding(f.Format)}
		}),
		FramePointerIsAbi: d.FramePointerIsABI,
		CallSites: column(d.CallSites, func(s *CallSite) *pb.CallSite {
			return &pb.CallSite{Code: s.Code, Mask: s.Mask, Rules: encodeRules(s.Rules)}
		}),
		Feature:  d.Feature,
		NoEngine: d.NoEngine,
		Symbols:  texts(d.Symbols),
		Relocations: column(d.Relocations, func(r *Relocation) *pb.Relocation {
			return &pb.Relocation{Type: r.Type, Size: uint32(r.Size), Kind: pb.RelocationKind(r.Kind), Field: pb.RelocationField(r.Field)}
		}),
		Dialects: column(d.Dialects, func(d *Dialect) *pb.Dialect {
			return &pb.Dialect{
				Name: d.Name,
				Operations: column(d.Operations, func(o *DialectOperation) *pb.DialectOperation {
					return &pb.DialectOperation{Opcode: uint32(o.Opcode), User: o.User, Name: o.Name}
				}),
			}
		}),
		Processors: column(d.Processors, func(p *Processor) *pb.Processor {
			return &pb.Processor{Name: p.Name, Lanes: p.Lanes, FlagsMask: p.FlagsMask, Flags: p.Flags}
		}),
		Companions: d.Companions,
		AddressClasses: column(d.AddressClasses, func(c *AddressClass) *pb.AddressClass {
			return &pb.AddressClass{Class: c.Class, Space: uint64(c.Space)}
		}),
	}
	p.FramePointer, p.Entry = encodeOneRow(d.FramePointer), encodeOneRow(d.Entry)
	if s := d.ReturnSlot; s != nil {
		p.ReturnSlot = &pb.ReturnSlot{Offset: s.Offset}
	}
	if s := d.ThreadLocal; s != nil {
		p.ThreadLocalStorage = &pb.ThreadLocal{
			Pointer: s.Pointer, Variant: pb.ThreadLocalVariant(s.Variant), TcbBelow: s.TCBBelow, TcbAbove: s.TCBAbove,
		}
	}
	if s := d.SignalFrame; s != nil {
		p.SignalFrame = &pb.SignalFrame{
			Info: s.Info, Pc: s.PC, Address: s.Address, Trap: s.Trap, TrapRecord: s.TrapRecord, TrapShift: s.TrapShift,
			Traps: column(s.Traps, func(t *Trap) *pb.Trap { return &pb.Trap{Number: t.Number, Signal: t.Signal, HasAddress: t.HasAddress} }),
		}
	}
	return p
}

// encodeOneRow encodes a row that may be absent.
func encodeOneRow(r *cfi.Row) *pb.Rows {
	if r == nil {
		return nil
	}
	return encodeRows([]cfi.Row{*r})
}

func encodeRegisterSet(s *RegisterSet) *pb.RegisterSet {
	return &pb.RegisterSet{
		Source: pb.RegisterSource(s.Source), Owner: s.Owner, Type: s.Type,
		Offsets:         column(s.Fields, func(f *RegisterField) uint32 { return f.Offset }),
		Sizes:           column(s.Fields, func(f *RegisterField) uint32 { return f.Size }),
		Registers:       column(s.Fields, func(f *RegisterField) uint32 { return f.Register }),
		RegisterOffsets: column(s.Fields, func(f *RegisterField) uint32 { return f.RegisterOffset }),
	}
}

func decodeDescription(p *pb.Description) (*Description, error) {
	d := decoder{message: "Description"}
	description := &Description{
		Name: d.text("name", p.GetName()), Version: d.text("version", p.GetVersion()),
		Recognises:  column(p.GetRecognises(), d.recogniser),
		ByteOrder:   enum(&d, "byte_order", p.GetByteOrder(), BigEndian),
		AddressBits: p.GetAddressBits(),
		Registers:   column(p.GetRegisters(), d.registerRange),
		RegisterSets: column(p.GetRegisterSets(), func(p **pb.RegisterSet) RegisterSet {
			s := *p
			return RegisterSet{
				Source: enum(&d, "register_sets.source", s.GetSource(), MinidumpContext),
				Owner:  s.GetOwner(), Type: s.GetType(),
				Fields: decodeFields(&d, s),
			}
		}),
		PC: p.GetPc(), SP: p.GetSp(), FP: p.GetFp(), ReturnAddress: p.GetReturnAddress(),
		AddressSpaces: column(p.GetAddressSpaces(), func(p **pb.AddressSpace) AddressSpace {
			s := *p
			return AddressSpace{
				Number: locexpr.AddressSpace(s.GetNumber()), Name: s.GetName(), Bits: s.GetBits(),
				Scope: enum(&d, "address_spaces.scope", s.GetScope(), LaneScope),
			}
		}),
		CallDistance:   p.GetCallDistance(),
		MaxInstruction: p.GetMaxInstruction(),
		StackAlign:     p.GetStackAlign(),
		SignState:      p.GetSignState(),
		CanonicalBits:  p.GetCanonicalBits(),
		TagBits:        p.GetTagBits(),
		EntryPushed:    p.GetEntryPushed(),
		FloatFormats: column(p.GetFloatFormats(), func(p **pb.FloatFormat) FloatFormat {
			f := *p
			return FloatFormat{Bits: f.GetBits(), Name: d.text("float_formats.name", f.GetName()), Format: enum(&d, "float_formats.encoding", f.GetEncoding(), locexpr.FloatDoubleDouble)}
		}),
		FramePointerIsABI: p.GetFramePointerIsAbi(),
		CallSites:         column(p.GetCallSites(), d.callSite),
		Feature:           p.GetFeature(),
		NoEngine:          p.GetNoEngine(),
		Symbols:           d.textList("symbols", p.GetSymbols()),
		Relocations:       column(p.GetRelocations(), d.relocation),
		Dialects: column(p.GetDialects(), func(p **pb.Dialect) Dialect {
			return Dialect{Name: (*p).GetName(), Operations: column((*p).GetOperations(), d.dialectOperation)}
		}),
		Processors: column(p.GetProcessors(), func(p **pb.Processor) Processor {
			return Processor{Name: (*p).GetName(), Lanes: (*p).GetLanes(), FlagsMask: (*p).GetFlagsMask(), Flags: (*p).GetFlags()}
		}),
		Companions: p.GetCompanions(),
		AddressClasses: column(p.GetAddressClasses(), func(p **pb.AddressClass) AddressClass {
			return AddressClass{Class: (*p).GetClass(), Space: locexpr.AddressSpace((*p).GetSpace())}
		}),
	}
	var err error
	description.DefaultRules, err = decodeRules(p.GetDefaultRules())
	d.wrap("default_rules", err)
	description.FramePointer = d.oneRow("frame_pointer", p.GetFramePointer())
	description.Entry = d.oneRow("entry", p.GetEntry())
	if s := p.GetReturnSlot(); s != nil {
		description.ReturnSlot = &ReturnSlot{Offset: s.GetOffset()}
	}
	if s := p.GetSignalFrame(); s != nil {
		description.SignalFrame = &SignalFrame{
			Info: s.GetInfo(), PC: s.GetPc(), Address: s.GetAddress(), Trap: s.GetTrap(), TrapRecord: s.GetTrapRecord(), TrapShift: s.GetTrapShift(),
			Traps: column(s.GetTraps(), func(t **pb.Trap) Trap { return Trap{(*t).GetNumber(), (*t).GetSignal(), (*t).GetHasAddress()} }),
		}
	}
	if s := p.GetThreadLocalStorage(); s != nil {
		description.ThreadLocal = &ThreadLocal{
			Pointer: s.GetPointer(), Variant: enum(&d, "thread_local_storage.variant", s.GetVariant(), ThreadLocalVariantII),
			TCBBelow: s.GetTcbBelow(), TCBAbove: s.GetTcbAbove(),
		}
	}
	return result(&d, description)
}

// oneRow decodes a row that may be absent.
func (d *decoder) oneRow(field string, p *pb.Rows) *cfi.Row {
	if p == nil {
		return nil
	}
	rows, err := decodeRows(p)
	d.wrap(field, err)
	if len(rows) != 1 {
		d.fail(field, "%d rows, expected one", len(rows))
		return nil
	}
	return &rows[0]
}

func (d *decoder) callSite(p **pb.CallSite) CallSite {
	rules, err := decodeRules((*p).GetRules())
	d.wrap("call_sites.rules", err)
	return CallSite{Code: nonEmpty((*p).GetCode()), Mask: nonEmpty((*p).GetMask()), Rules: rules}
}

func (d *decoder) registerRange(p **pb.RegisterRange) RegisterRange {
	r := *p
	return RegisterRange{
		First: r.GetFirst(), Count: r.GetCount(), Names: r.GetNames(),
		Bits: r.GetBits(), Class: enum(d, "registers.class", r.GetClass(), Control),
		FirstIndex: r.GetFirstIndex(), Aliases: r.GetAliases(), Lanes: r.GetLanes(),
		Narrow: enum(d, "registers.narrow", r.GetNarrow(), NarrowConverted),
	}
}

func (d *decoder) recogniser(p **pb.Recogniser) Recogniser {
	r := *p
	d.small("recognises.elf_machine", r.GetElfMachine(), math.MaxUint16)
	d.small("recognises.elf_class", r.GetElfClass(), math.MaxUint8)
	d.small("recognises.elf_data", r.GetElfData(), math.MaxUint8)
	return Recogniser{
		ELFMachine: uint16(r.GetElfMachine()), OSABI: r.GetOsAbi(),
		FlagsMask: r.GetFlagsMask(), Flags: r.GetFlags(),
		Magic: nonEmpty(r.GetMagic()), NoteOwner: r.GetNoteOwner(),
		ELFClass: uint8(r.GetElfClass()), ELFData: uint8(r.GetElfData()), //nolint:gosec // small
	}
}

func (d *decoder) relocation(p **pb.Relocation) Relocation {
	r := *p
	d.small("relocations.size", r.GetSize(), math.MaxUint8)
	return Relocation{
		Type: r.GetType(), Size: uint8(r.GetSize()),
		Kind:  enum(d, "relocations.kind", r.GetKind(), RelocationRelativePA),
		Field: enum(d, "relocations.field", r.GetField(), FieldULEB128),
	}
}

func (d *decoder) dialectOperation(p **pb.DialectOperation) DialectOperation {
	o := *p
	d.small("dialects.operations.opcode", o.GetOpcode(), math.MaxUint8)
	return DialectOperation{Opcode: byte(o.GetOpcode()), User: o.GetUser(), Name: o.GetName()}
}

func decodeFields(d *decoder, s *pb.RegisterSet) []RegisterField {
	n := d.entries("register_sets.offsets", len(s.GetOffsets()))
	d.length("register_sets.sizes", len(s.GetSizes()), n)
	d.length("register_sets.registers", len(s.GetRegisters()), n)
	d.length("register_sets.register_offsets", len(s.GetRegisterOffsets()), n)
	return listOf(d, n, func(i int) RegisterField {
		return RegisterField{
			Offset: s.Offsets[i], Size: s.Sizes[i],
			Register: s.Registers[i], RegisterOffset: s.RegisterOffsets[i],
		}
	})
}

// nonEmpty returns nil for an empty slice.
func nonEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
