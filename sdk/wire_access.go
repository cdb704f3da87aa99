// SPDX-License-Identifier: Apache-2.0

package sdk

import pb "github.com/unwindd/unwindd/sdk/archpb"

// encodeKinds returns the column of kinds; nil where no instruction has one, as of an
// architecture that only disassembles.
func encodeKinds(list []Instruction) []pb.InstructionKind {
	for i := range list {
		if list[i].Kind != OtherInstruction {
			return column(list, func(instruction *Instruction) pb.InstructionKind { return pb.InstructionKind(instruction.Kind) })
		}
	}
	return nil
}

func encodeAccesses(list []Instruction) *pb.Accesses {
	var all []Access
	for i := range list {
		all = append(all, list[i].Accesses...)
	}
	if len(all) == 0 {
		return nil
	}
	p := &pb.Accesses{
		Counts:        column(list, func(instruction *Instruction) uint32 { return uint32(len(instruction.Accesses)) }), //nolint:gosec // MaxAccesses
		Reads:         column(all, func(a *Access) bool { return a.IsRead }),
		Writes:        column(all, func(a *Access) bool { return a.IsWrite }),
		Sizes:         column(all, func(a *Access) uint32 { return a.Size }),
		Bases:         column(all, func(a *Access) uint32 { return a.Base }),
		Indexes:       column(all, func(a *Access) uint32 { return a.Index }),
		Segments:      column(all, func(a *Access) uint32 { return a.Segment }),
		Scales:        column(all, func(a *Access) uint32 { return a.Scale }),
		Displacements: column(all, func(a *Access) int64 { return a.Displacement }),
		AddressBits:   column(all, func(a *Access) uint32 { return a.AddressBits }),
	}
	for i := range all {
		if all[i].IndexBits != 0 || all[i].IsIndexSigned {
			p.IndexBits = column(all, func(a *Access) uint32 { return a.IndexBits })
			p.IndexesSigned = column(all, func(a *Access) bool { return a.IsIndexSigned })
			break
		}
	}
	return p
}

// accessCursor returns the accesses of one instruction after the other.
type accessCursor struct {
	counts []uint32
	all    []Access
}

func (c *accessCursor) next() (list []Access) {
	if len(c.counts) == 0 || c.counts[0] == 0 {
		if len(c.counts) > 0 {
			c.counts = c.counts[1:]
		}
		return nil
	}
	n := c.counts[0]
	list, c.all, c.counts = c.all[:n:n], c.all[n:], c.counts[1:]
	return list
}

// decodeAccesses reads the accesses of n instructions.
func decodeAccesses(d *decoder, p *pb.Accesses, n int) (c accessCursor) {
	if p == nil {
		return c
	}
	all := d.entries("accesses.bases", len(p.Bases))
	d.length("accesses.counts", len(p.Counts), n)
	d.sum("accesses.counts", p.Counts, all)
	for _, column := range []struct {
		name string
		size int
	}{
		{"reads", len(p.Reads)}, {"writes", len(p.Writes)}, {"sizes", len(p.Sizes)}, {"indexes", len(p.Indexes)},
		{"segments", len(p.Segments)}, {"scales", len(p.Scales)}, {"displacements", len(p.Displacements)},
		{"address_bits", len(p.AddressBits)},
	} {
		d.length("accesses."+column.name, column.size, all)
	}
	hasIndexBits := len(p.IndexBits) > 0 || len(p.IndexesSigned) > 0
	if hasIndexBits {
		d.length("accesses.index_bits", len(p.IndexBits), all)
		d.length("accesses.indexes_signed", len(p.IndexesSigned), all)
	}
	if d.err != nil {
		return c
	}
	c = accessCursor{p.Counts, make([]Access, all)}
	for i := range c.all {
		c.all[i] = Access{
			IsRead: p.Reads[i], IsWrite: p.Writes[i], Size: p.Sizes[i], Base: p.Bases[i], Index: p.Indexes[i], Segment: p.Segments[i],
			Scale: p.Scales[i], Displacement: p.Displacements[i], AddressBits: p.AddressBits[i],
		}
		if hasIndexBits {
			c.all[i].IndexBits, c.all[i].IsIndexSigned = p.IndexBits[i], p.IndexesSigned[i]
		}
	}
	return c
}
