// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"math"

	"github.com/unwindd/unwindd/cfi"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeOpenObjectRequest(r *OpenObjectRequest) *pb.OpenObjectRequest {
	return &pb.OpenObjectRequest{
		Object: r.Object, Path: []byte(r.Path),
		Machine: uint32(r.Machine), OsAbi: uint32(r.OSABI), Flags: r.Flags, Processor: r.Processor,
		Sections: encodeSections(r.Sections),
		Symbols: &pb.Symbols{
			Names:     blobs(r.Symbols, func(s *SymbolInfo) string { return s.Name }),
			Addresses: column(r.Symbols, func(s *SymbolInfo) uint64 { return s.Address }),
			Sizes:     column(r.Symbols, func(s *SymbolInfo) uint64 { return s.Size }),
			Others:    unlessZero(column(r.Symbols, func(s *SymbolInfo) uint32 { return uint32(s.Other) })),
			Sections:  unlessZero(column(r.Symbols, func(s *SymbolInfo) uint32 { return s.Section })),
		},
		Companions: column(r.Companions, func(c *Companion) *pb.Companion { return &pb.Companion{Suffix: c.Suffix, Object: c.Object} }),
	}
}

func decodeOpenObjectRequest(p *pb.OpenObjectRequest) (*OpenObjectRequest, error) {
	d := decoder{message: "OpenObjectRequest"}
	d.small("machine", p.GetMachine(), math.MaxUint16)
	d.small("os_abi", p.GetOsAbi(), math.MaxUint8)
	r := &OpenObjectRequest{
		Object: p.GetObject(), Path: d.text("path", string(p.GetPath())),
		Machine: uint16(p.GetMachine()), OSABI: uint8(p.GetOsAbi()), Flags: p.GetFlags(), Processor: d.text("processor", p.GetProcessor()),
		Companions: column(p.GetCompanions(), func(c **pb.Companion) Companion { return Companion{(*c).GetSuffix(), (*c).GetObject()} }),
		Sections:   decodeSections(&d, p.GetSections()),
	}
	y := p.GetSymbols()
	m := d.entries("symbols.addresses", len(y.GetAddresses()))
	symbols := d.texts("symbols.names", y.GetNames(), m)
	d.length("symbols.sizes", len(y.GetSizes()), m)
	others := sparse(&d, "symbols.others", y.GetOthers(), m)
	homes := sparse(&d, "symbols.sections", y.GetSections(), m)
	r.Symbols = listOf(&d, m, func(i int) SymbolInfo {
		d.small("symbols.others", others[i], math.MaxUint8)
		return SymbolInfo{Name: symbols.next(), Address: y.Addresses[i], Size: y.Sizes[i], Other: uint8(others[i]), Section: homes[i]}
	})
	return result(&d, r)
}

func encodeSections(list []SectionInfo) *pb.Sections {
	return &pb.Sections{
		Names:     blobs(list, func(s *SectionInfo) string { return s.Name }),
		Types:     column(list, func(s *SectionInfo) uint32 { return s.Type }),
		Flags:     column(list, func(s *SectionInfo) uint64 { return s.Flags }),
		Addresses: column(list, func(s *SectionInfo) uint64 { return s.Address }),
		Sizes:     column(list, func(s *SectionInfo) uint64 { return s.Size }),
	}
}

func decodeSections(d *decoder, p *pb.Sections) []SectionInfo {
	n := d.entries("sections.types", len(p.GetTypes()))
	names := d.texts("sections.names", p.GetNames(), n)
	d.length("sections.flags", len(p.GetFlags()), n)
	d.length("sections.addresses", len(p.GetAddresses()), n)
	d.length("sections.sizes", len(p.GetSizes()), n)
	return listOf(d, n, func(i int) SectionInfo {
		return SectionInfo{Name: names.next(), Type: p.Types[i], Flags: p.Flags[i], Address: p.Addresses[i], Size: p.Sizes[i]}
	})
}

// checkColumns checks that all columns of a list have the same length.
func checkColumns(a *OpenObjectAnswer) error {
	for i := range a.PositionMaps {
		m := &a.PositionMaps[i]
		if len(m.PCs) != len(m.Positions) {
			return fmt.Errorf("OpenObjectAnswer.PositionMaps[%d]: %d PCs and %d positions, expected as many", i, len(m.PCs), len(m.Positions))
		}
	}
	for i := range a.Variables {
		v := &a.Variables[i]
		if len(v.Start) != len(v.End) || len(v.Start) != len(v.Locations) {
			return fmt.Errorf("OpenObjectAnswer.Variables[%d]: %d starts, %d ends and %d locations, expected as many",
				i, len(v.Start), len(v.End), len(v.Locations))
		}
	}
	return nil
}

// encodeOpenObjectAnswer encodes an answer without the rows of its tables,
// which go in parts of their own.
func encodeOpenObjectAnswer(a *OpenObjectAnswer) (*pb.OpenObjectAnswer, error) {
	if err := checkColumns(a); err != nil {
		return nil, err
	}
	return &pb.OpenObjectAnswer{
		Processor: a.Processor, Dialect: a.Dialect, ChecksCfi: a.ChecksCFI, ReadsCfi: a.ReadsCFI,
		Overrides: &pb.Overrides{
			Augmentations: blobs(a.Overrides, func(o *DialectOverride) string { return o.Augmentation }),
			Producers:     blobs(a.Overrides, func(o *DialectOverride) string { return o.Producer }),
			Dialects:      blobs(a.Overrides, func(o *DialectOverride) string { return o.Dialect }),
		},
		DefaultRules: encodeOptionalRules(a.DefaultRules),
		Nested: &pb.Nested{
			Names:   blobs(a.Nested, func(n *NestedObject) string { return n.Name }),
			Offsets: column(a.Nested, func(n *NestedObject) uint64 { return n.Offset }),
			Sizes:   column(a.Nested, func(n *NestedObject) uint64 { return n.Size }),
		},
		Tables: &pb.Tables{
			Priorities: column(a.Tables, func(t *RowTable) pb.RowPriority { return pb.RowPriority(t.Priority) }),
			Reasons:    blobs(a.Tables, func(t *RowTable) string { return t.Reason }),
			Sections:   column(a.Tables, func(t *RowTable) uint32 { return t.Section }),
		},
		Functions: &pb.Functions{
			Names:  blobs(a.Functions, func(f *Function) string { return f.Name }),
			Starts: column(a.Functions, func(f *Function) uint64 { return f.Start }),
			Ends:   column(a.Functions, func(f *Function) uint64 { return f.End }),
			Lanes:  column(a.Functions, func(f *Function) uint32 { return f.Lanes }),
			Kinds:  column(a.Functions, func(f *Function) pb.FunctionKind { return pb.FunctionKind(f.Kind) }),
			DefaultRuleCounts: column(a.Functions, func(f *Function) uint32 {
				if f.DefaultRules == nil {
					return 0
				}
				return uint32(len(f.DefaultRules)) + 1
			}),
			DefaultRules: encodeRules(flat(a.Functions, func(f *Function) []cfi.RegisterRule { return f.DefaultRules })),
			Sections:     column(a.Functions, func(f *Function) uint32 { return f.Section }),
		},
		PositionMaps: &pb.PositionMaps{
			Kinds:     blobs(a.PositionMaps, func(m *PositionMap) string { return m.Kind }),
			Counts:    column(a.PositionMaps, func(m *PositionMap) uint32 { return uint32(len(m.PCs)) }),
			Pcs:       flat(a.PositionMaps, func(m *PositionMap) []uint64 { return m.PCs }),
			Positions: flat(a.PositionMaps, func(m *PositionMap) []uint64 { return m.Positions }),
			Sections:  column(a.PositionMaps, func(m *PositionMap) uint32 { return m.Section }),
		},
		Variables: &pb.Variables{
			Names:     blobs(a.Variables, func(v *Variable) string { return v.Name }),
			Counts:    column(a.Variables, func(v *Variable) uint32 { return uint32(len(v.Start)) }),
			Starts:    flat(a.Variables, func(v *Variable) []uint64 { return v.Start }),
			Ends:      flat(a.Variables, func(v *Variable) []uint64 { return v.End }),
			Locations: blobs(flat(a.Variables, func(v *Variable) [][]byte { return v.Locations }), func(b *[]byte) []byte { return *b }),
			Sections:  column(a.Variables, func(v *Variable) uint32 { return v.Section }),
			Registers: column(a.Variables, func(v *Variable) uint64 { return v.Register }),
		},
		Problems: texts(a.Problems),
	}, nil
}

// decodeOpenObjectAnswer decodes an answer. Its tables have no rows yet.
func decodeOpenObjectAnswer(p *pb.OpenObjectAnswer) (*OpenObjectAnswer, error) {
	d := decoder{message: "OpenObjectAnswer"}
	a := &OpenObjectAnswer{
		Processor: d.text("processor", p.GetProcessor()),
		Dialect:   d.text("dialect", p.GetDialect()),
		Overrides: decodeOverrides(&d, p.GetOverrides()),
		Nested:    decodeNested(&d, p.GetNested()),
		Tables:    decodeTables(&d, p.GetTables()),
		Functions: decodeFunctions(&d, p.GetFunctions()),
		Problems:  d.textList("problems", p.GetProblems()),
		ChecksCFI: p.GetChecksCfi(),
		ReadsCFI:  p.GetReadsCfi(),
	}
	var err error
	a.DefaultRules, err = decodeOptionalRules(p.GetDefaultRules())
	d.wrap("default_rules", err)
	a.PositionMaps = decodePositionMaps(&d, p.GetPositionMaps())
	a.Variables = decodeVariables(&d, p.GetVariables())
	return result(&d, a)
}

func decodeOverrides(d *decoder, p *pb.Overrides) []DialectOverride {
	n := d.entries("overrides.augmentations", len(p.GetAugmentations().GetLengths()))
	augmentations := d.texts("overrides.augmentations", p.GetAugmentations(), n)
	producers := d.texts("overrides.producers", p.GetProducers(), n)
	dialects := d.texts("overrides.dialects", p.GetDialects(), n)
	return listOf(d, n, func(i int) DialectOverride {
		return DialectOverride{augmentations.next(), producers.next(), dialects.next()}
	})
}

func decodeNested(d *decoder, p *pb.Nested) []NestedObject {
	n := d.entries("nested.offsets", len(p.GetOffsets()))
	names := d.texts("nested.names", p.GetNames(), n)
	d.length("nested.sizes", len(p.GetSizes()), n)
	return listOf(d, n, func(i int) NestedObject {
		return NestedObject{Name: names.next(), Offset: p.Offsets[i], Size: p.Sizes[i]}
	})
}

func decodeTables(d *decoder, p *pb.Tables) []RowTable {
	n := d.entries("tables.priorities", len(p.GetPriorities()))
	enums(d, "tables.priorities", p.GetPriorities(), n, OverridesCFI)
	reasons := d.texts("tables.reasons", p.GetReasons(), n)
	d.length("tables.sections", len(p.GetSections()), n)
	return listOf(d, n, func(i int) RowTable {
		return RowTable{Priority: RowPriority(p.Priorities[i]), Reason: reasons.next(), Section: p.Sections[i]}
	})
}

func decodeFunctions(d *decoder, p *pb.Functions) []Function {
	n := d.entries("functions.starts", len(p.GetStarts()))
	names := d.texts("functions.names", p.GetNames(), n)
	d.length("functions.ends", len(p.GetEnds()), n)
	d.length("functions.lanes", len(p.GetLanes()), n)
	enums(d, "functions.kinds", p.GetKinds(), n, StackSwitchFunction)
	d.length("functions.default_rule_counts", len(p.GetDefaultRuleCounts()), n)
	d.length("functions.sections", len(p.GetSections()), n)
	rules, err := decodeRules(p.GetDefaultRules())
	d.wrap("functions.default_rules", err)
	counts := column(p.GetDefaultRuleCounts(), func(c *uint32) uint32 { return max(*c, 1) - 1 })
	d.sum("functions.default_rule_counts", counts, len(rules))
	lists := splitter[cfi.RegisterRule]{rules}
	return listOf(d, n, func(i int) Function {
		f := Function{
			Name: names.next(), Start: p.Starts[i], End: p.Ends[i],
			Lanes: p.Lanes[i], Kind: FunctionKind(p.Kinds[i]), Section: p.Sections[i],
		}
		switch c := p.DefaultRuleCounts[i]; c {
		case 0:
		case 1:
			f.DefaultRules = []cfi.RegisterRule{}
		default:
			f.DefaultRules = lists.next(c - 1)
		}
		return f
	})
}

func decodePositionMaps(d *decoder, p *pb.PositionMaps) []PositionMap {
	n := d.entries("position_maps.counts", len(p.GetCounts()))
	kinds := d.texts("position_maps.kinds", p.GetKinds(), n)
	d.sum("position_maps.counts", p.GetCounts(), len(p.GetPcs()))
	d.length("position_maps.positions", len(p.GetPositions()), len(p.GetPcs()))
	d.length("position_maps.sections", len(p.GetSections()), n)
	pcs, positions := splitter[uint64]{p.GetPcs()}, splitter[uint64]{p.GetPositions()}
	return listOf(d, n, func(i int) PositionMap {
		c := p.Counts[i]
		return PositionMap{Kind: kinds.next(), Section: p.Sections[i], PCs: pcs.next(c), Positions: positions.next(c)}
	})
}

func decodeVariables(d *decoder, p *pb.Variables) []Variable {
	n := d.entries("variables.counts", len(p.GetCounts()))
	names := d.texts("variables.names", p.GetNames(), n)
	ranges := d.entries("variables.starts", len(p.GetStarts()))
	d.sum("variables.counts", p.GetCounts(), ranges)
	d.length("variables.ends", len(p.GetEnds()), ranges)
	d.length("variables.sections", len(p.GetSections()), n)
	cursor := d.bytes("variables.locations", p.GetLocations(), ranges)
	registers := p.GetRegisters() // of a plugin that is older none
	if len(registers) == 0 {
		registers = make([]uint64, n)
	}
	d.length("variables.registers", len(registers), n)
	starts, ends := splitter[uint64]{p.GetStarts()}, splitter[uint64]{p.GetEnds()}
	locations := splitter[[]byte]{listOf(d, ranges, func(int) []byte { return cursor.next() })}
	return listOf(d, n, func(i int) Variable {
		c := p.Counts[i]
		return Variable{Name: names.next(), Register: registers[i], Section: p.Sections[i], Start: starts.next(c), End: ends.next(c), Locations: locations.next(c)}
	})
}
