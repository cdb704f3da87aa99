// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeRegisters[T any](list []T, get func(*T) *Registers) (*pb.RegistersColumn, error) {
	c := &pb.RegistersColumn{}
	var registers, size int
	for i := range list {
		r := get(&list[i])
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		registers += len(r.Numbers)
		size += len(r.Data)
	}
	if len(list) > 0 {
		c.Counts = make([]uint32, 0, len(list))
		c.Numbers = make([]uint32, 0, registers)
		c.Lengths = make([]uint32, 0, registers)
		c.Data = make([]byte, 0, size)
	}
	for i := range list {
		r := get(&list[i])
		c.Counts = append(c.Counts, uint32(len(r.Numbers)))
		c.Numbers = append(c.Numbers, r.Numbers...)
		for j := range r.Numbers {
			c.Lengths = append(c.Lengths, r.Offsets[j+1]-r.Offsets[j])
		}
		c.Data = append(c.Data, r.Data...)
	}
	return c, nil
}

// decodeRegisters decodes n register states. They alias the message; Set on
// one does not touch another.
func decodeRegisters(p *pb.RegistersColumn, n int) ([]Registers, error) {
	d := decoder{message: "RegistersColumn"}
	d.length("counts", len(p.GetCounts()), n)
	d.sum("counts", p.GetCounts(), len(p.GetNumbers()))
	d.length("lengths", len(p.GetLengths()), len(p.GetNumbers()))
	d.sum("lengths", p.GetLengths(), len(p.GetData()))
	for i, c := range p.GetCounts() {
		if c > MaxRegisters {
			d.fail("counts", "%d at %d, expected at most %d", c, i, MaxRegisters)
			break
		}
	}
	for i, l := range p.GetLengths() {
		if l > (MaxRegisterBits+7)/8 {
			d.fail("lengths", "%d at %d, expected at most %d bytes", l, i, (MaxRegisterBits+7)/8)
			break
		}
	}
	if d.err != nil || n == 0 {
		return nil, d.err
	}
	states := make([]Registers, n)
	numbers := splitter[uint32]{p.GetNumbers()}
	lengths := splitter[uint32]{p.GetLengths()}
	data := p.GetData()
	// All offsets in one allocation: one more than registers for each state.
	offsets := make([]uint32, 0, len(p.GetNumbers())+n)
	for i := range states {
		count := p.Counts[i]
		if count == 0 {
			continue
		}
		first, total := len(offsets), uint64(0)
		offsets = append(offsets, 0)
		for _, l := range lengths.next(count) {
			total += uint64(l)
			if total > MaxRegisterData {
				d.fail("lengths", "more than %d bytes in state %d", MaxRegisterData, i)
				return nil, d.err
			}
			offsets = append(offsets, uint32(total))
		}
		states[i] = Registers{
			Numbers: numbers.next(count),
			Offsets: offsets[first:len(offsets):len(offsets)],
			Data:    data[:total:total],
		}
		data = data[total:]
		if err := states[i].Validate(); err != nil {
			d.fail("numbers", "state %d: %v", i, err)
			return nil, d.err
		}
		if len(states[i].Data) == 0 {
			states[i].Data = nil
		}
	}
	return states, nil
}
