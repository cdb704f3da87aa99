// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeManagedThreadsRequest(r *ManagedThreadsRequest) *pb.ManagedThreadsRequest {
	return &pb.ManagedThreadsRequest{Runtime: r.Runtime, Frames: r.Frames}
}

func decodeManagedThreadsRequest(p *pb.ManagedThreadsRequest) (*ManagedThreadsRequest, error) {
	return &ManagedThreadsRequest{Runtime: p.GetRuntime(), Frames: p.GetFrames()}, nil
}

func encodeManagedThreads(list []ManagedThread) (*pb.ManagedThreadsPart, error) {
	frames, err := encodeManagedFrames(flat(list, func(t *ManagedThread) []ManagedFrame { return t.Frames }))
	if err != nil {
		return nil, err
	}
	registers, err := encodeRegisters(list, func(t *ManagedThread) *Registers { return &t.Registers })
	if err != nil {
		return nil, fmt.Errorf("ManagedThreadsAnswer.Threads: %w", err)
	}
	return &pb.ManagedThreadsPart{
		Numbers:        column(list, func(t *ManagedThread) uint64 { return t.Number }),
		Names:          blobs(list, func(t *ManagedThread) string { return t.Name }),
		States:         blobs(list, func(t *ManagedThread) string { return t.State }),
		Reasons:        blobs(list, func(t *ManagedThread) string { return t.Reason }),
		Parents:        column(list, func(t *ManagedThread) uint64 { return t.Parent }),
		WaitsForCounts: column(list, func(t *ManagedThread) uint32 { return uint32(len(t.WaitsFor)) }), //nolint:gosec // a count
		WaitsFor:       flat(list, func(t *ManagedThread) []uint64 { return t.WaitsFor }),
		CreatedAt:      column(list, func(t *ManagedThread) uint64 { return t.CreatedAt }),
		StartedAt:      column(list, func(t *ManagedThread) uint64 { return t.StartedAt }),
		WaitSince:      column(list, func(t *ManagedThread) uint64 { return t.WaitSince }),
		WaitAtLeast:    column(list, func(t *ManagedThread) uint64 { return t.WaitAtLeast }),
		Pinned:         column(list, func(t *ManagedThread) bool { return t.IsPinned }),
		Scanned:        column(list, func(t *ManagedThread) bool { return t.IsScanned }),
		System:         column(list, func(t *ManagedThread) bool { return t.IsSystem }),
		Carriers:       blobs(list, func(t *ManagedThread) string { return t.Carrier }),
		Mounted:        column(list, func(t *ManagedThread) bool { return t.IsMounted }),
		StackLows:      column(list, func(t *ManagedThread) uint64 { return t.StackLow }),
		StackHighs:     column(list, func(t *ManagedThread) uint64 { return t.StackHigh }),
		Registers:      registers,
		InCall:         column(list, func(t *ManagedThread) bool { return t.IsInCall }),
		FrameCounts:    column(list, func(t *ManagedThread) uint32 { return uint32(len(t.Frames)) }), //nolint:gosec // a count
		Frames:         frames,
		Problems:       blobs(list, func(t *ManagedThread) string { return t.Problem }),
	}, nil
}

func decodeManagedThreads(p *pb.ManagedThreadsPart) ([]ManagedThread, error) {
	d := decoder{message: "ManagedThreadsPart"}
	n := d.entries("numbers", len(p.GetNumbers()))
	names, states, reasons := d.texts("names", p.GetNames(), n), d.texts("states", p.GetStates(), n), d.texts("reasons", p.GetReasons(), n)
	carriers, problems := d.texts("carriers", p.GetCarriers(), n), d.texts("problems", p.GetProblems(), n)
	for _, c := range []struct {
		name string
		size int
	}{
		{"parents", len(p.GetParents())}, {"waits_for_counts", len(p.GetWaitsForCounts())}, {"created_at", len(p.GetCreatedAt())},
		{"started_at", len(p.GetStartedAt())}, {"wait_since", len(p.GetWaitSince())}, {"wait_at_least", len(p.GetWaitAtLeast())},
		{"pinned", len(p.GetPinned())}, {"scanned", len(p.GetScanned())}, {"system", len(p.GetSystem())}, {"mounted", len(p.GetMounted())},
		{"stack_lows", len(p.GetStackLows())}, {"stack_highs", len(p.GetStackHighs())}, {"in_call", len(p.GetInCall())},
		{"frame_counts", len(p.GetFrameCounts())},
	} {
		d.length(c.name, c.size, n)
	}
	d.sum("waits_for_counts", p.GetWaitsForCounts(), len(p.GetWaitsFor()))
	registers, err := decodeRegisters(p.GetRegisters(), n)
	d.wrap("registers", err)
	frames, err := decodeManagedFrames(p.GetFrames())
	d.wrap("frames", err)
	d.sum("frame_counts", p.GetFrameCounts(), len(frames))
	waits, lists := splitter[uint64]{p.GetWaitsFor()}, splitter[ManagedFrame]{frames}
	threads := listOf(&d, n, func(i int) ManagedThread {
		return ManagedThread{
			Number: p.Numbers[i], Name: names.next(), State: states.next(), Reason: reasons.next(), Parent: p.Parents[i],
			WaitsFor: waits.next(p.WaitsForCounts[i]), CreatedAt: p.CreatedAt[i], StartedAt: p.StartedAt[i],
			WaitSince: p.WaitSince[i], WaitAtLeast: p.WaitAtLeast[i], IsPinned: p.Pinned[i], IsScanned: p.Scanned[i], IsSystem: p.System[i],
			Carrier: carriers.next(), IsMounted: p.Mounted[i], StackLow: p.StackLows[i], StackHigh: p.StackHighs[i],
			Registers: registers[i], IsInCall: p.InCall[i], Frames: lists.next(p.FrameCounts[i]), Problem: problems.next(),
		}
	})
	return threads, d.err
}

// addManagedThreads adds a part to an answer.
func addManagedThreads(a *ManagedThreadsAnswer, p *pb.ManagedThreadsPart) error {
	d := decoder{message: "ManagedThreadsPart"}
	problems := d.textList("answer_problems", p.GetAnswerProblems())
	if d.err != nil {
		return d.err
	}
	threads, err := decodeManagedThreads(p)
	switch {
	case err != nil:
		return err
	case len(a.Threads)+len(threads) > MaxBatch:
		return fmt.Errorf("%w: ManagedThreadsPart.numbers: more than %d threads in all", ErrMalformed, MaxBatch)
	case len(a.Problems)+len(problems) > maxProblems:
		return fmt.Errorf("%w: ManagedThreadsPart.answer_problems: more than %d in all", ErrMalformed, maxProblems)
	}
	a.Threads, a.Problems = append(a.Threads, threads...), append(a.Problems, problems...)
	return nil
}
