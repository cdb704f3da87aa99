// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"slices"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeManagedFramesAnswer(a *ManagedFramesAnswer) (*pb.ManagedFramesAnswer, error) {
	runs := flat(a.Stacks, func(s *ManagedStack) []ManagedRun { return s.Runs })
	frames, err := encodeManagedFrames(flat(runs, func(r *ManagedRun) []ManagedFrame { return r.Frames }))
	if err != nil {
		return nil, err
	}
	states, err := encodeManagedStates(a.Stacks)
	return &pb.ManagedFramesAnswer{
		RunCounts:   column(a.Stacks, func(s *ManagedStack) uint32 { return uint32(len(s.Runs)) }), //nolint:gosec // a count
		Problems:    blobs(a.Stacks, func(s *ManagedStack) string { return s.Problem }),
		Firsts:      column(runs, func(r *ManagedRun) uint32 { return r.First }),
		Counts:      column(runs, func(r *ManagedRun) uint32 { return r.Count }),
		FrameCounts: column(runs, func(r *ManagedRun) uint32 { return uint32(len(r.Frames)) }), //nolint:gosec // a count
		Frames:      frames,
		States:      states,
	}, err
}

func decodeManagedFramesAnswer(p *pb.ManagedFramesAnswer) (*ManagedFramesAnswer, error) {
	d := decoder{message: "ManagedFramesAnswer"}
	n := d.entries("run_counts", len(p.GetRunCounts()))
	problems := d.texts("problems", p.GetProblems(), n)
	m := d.entries("firsts", len(p.GetFirsts()))
	d.sum("run_counts", p.GetRunCounts(), m)
	d.length("counts", len(p.GetCounts()), m)
	d.length("frame_counts", len(p.GetFrameCounts()), m)
	frames, err := decodeManagedFrames(p.GetFrames())
	d.wrap("frames", err)
	d.sum("frame_counts", p.GetFrameCounts(), len(frames))
	lists := splitter[ManagedFrame]{frames}
	runs := splitter[ManagedRun]{listOf(&d, m, func(i int) ManagedRun {
		return ManagedRun{First: p.Firsts[i], Count: p.Counts[i], Frames: lists.next(p.FrameCounts[i])}
	})}
	a := &ManagedFramesAnswer{Stacks: listOf(&d, n, func(i int) ManagedStack {
		return ManagedStack{Runs: runs.next(p.RunCounts[i]), Problem: problems.next()}
	})}
	if d.err == nil && p.GetStates() != nil {
		d.wrap("states", decodeManagedStates(p.GetStates(), a.Stacks))
	}
	return result(&d, a)
}

// encodeManagedStates encodes the state of each thread; nil where nothing is known of any.
func encodeManagedStates(list []ManagedStack) (*pb.ManagedStates, error) {
	if !slices.ContainsFunc(list, func(s ManagedStack) bool {
		return s.Name != "" || s.State != "" || len(s.Locks) > 0 || s.Exception != nil
	}) {
		return nil, nil //nolint:nilnil // absent
	}
	locks := flat(list, func(s *ManagedStack) []ManagedLock { return s.Locks })
	var exceptions []*ManagedException
	for i := range list {
		if list[i].Exception != nil {
			exceptions = append(exceptions, list[i].Exception)
		}
	}
	frames, err := encodeManagedFrames(flat(exceptions, func(e **ManagedException) []ManagedFrame { return (*e).Frames }))
	return &pb.ManagedStates{
		Names:      blobs(list, func(s *ManagedStack) string { return s.Name }),
		States:     blobs(list, func(s *ManagedStack) string { return s.State }),
		LockCounts: column(list, func(s *ManagedStack) uint32 { return uint32(len(s.Locks)) }), //nolint:gosec // a count
		Locks: &pb.ManagedLocks{
			Addresses: column(locks, func(l *ManagedLock) uint64 { return l.Address }),
			Names:     blobs(locks, func(l *ManagedLock) string { return l.Name }),
			Waited:    column(locks, func(l *ManagedLock) bool { return l.IsWaited }),
		},
		HasException: column(list, func(s *ManagedStack) bool { return s.Exception != nil }),
		Exceptions: &pb.ManagedExceptions{
			Types:       blobs(exceptions, func(e **ManagedException) string { return (*e).Type }),
			Texts:       blobs(exceptions, func(e **ManagedException) string { return (*e).Text }),
			FrameCounts: column(exceptions, func(e **ManagedException) uint32 { return uint32(len((*e).Frames)) }), //nolint:gosec // a count
			Frames:      frames,
		},
	}, err
}

// decodeManagedStates adds the states of threads to their stacks.
func decodeManagedStates(p *pb.ManagedStates, stacks []ManagedStack) error {
	d := decoder{message: "ManagedStates"}
	n := len(stacks)
	names, states := d.texts("names", p.GetNames(), n), d.texts("states", p.GetStates(), n)
	d.length("lock_counts", len(p.GetLockCounts()), n)
	d.length("has_exception", len(p.GetHasException()), n)
	locks := splitter[ManagedLock]{decodeManagedLocks(&d, p.GetLocks())}
	d.sum("lock_counts", p.GetLockCounts(), len(locks.all))
	exceptions := decodeManagedExceptions(&d, p.GetExceptions())
	if d.err != nil {
		return d.err
	}
	for i := range stacks {
		s := &stacks[i]
		s.Name, s.State, s.Locks = names.next(), states.next(), locks.next(p.LockCounts[i])
		if !p.HasException[i] {
			continue
		}
		if len(exceptions) == 0 {
			d.fail("exceptions.types", "too few, expected one for each thread that has one")
			return d.err
		}
		s.Exception, exceptions = &exceptions[0], exceptions[1:]
	}
	d.length("exceptions.types", len(exceptions), 0)
	return d.err
}

func decodeManagedLocks(d *decoder, p *pb.ManagedLocks) []ManagedLock {
	n := d.entries("locks.addresses", len(p.GetAddresses()))
	names := d.texts("locks.names", p.GetNames(), n)
	d.length("locks.waited", len(p.GetWaited()), n)
	return listOf(d, n, func(i int) ManagedLock {
		return ManagedLock{Address: p.Addresses[i], Name: names.next(), IsWaited: p.Waited[i]}
	})
}

func decodeManagedExceptions(d *decoder, p *pb.ManagedExceptions) []ManagedException {
	n := d.entries("exceptions.frame_counts", len(p.GetFrameCounts()))
	types, texts := d.texts("exceptions.types", p.GetTypes(), n), d.texts("exceptions.texts", p.GetTexts(), n)
	frames, err := decodeManagedFrames(p.GetFrames())
	d.wrap("exceptions.frames", err)
	d.sum("exceptions.frame_counts", p.GetFrameCounts(), len(frames))
	lists := splitter[ManagedFrame]{frames}
	return listOf(d, n, func(i int) ManagedException {
		return ManagedException{Type: types.next(), Text: texts.next(), Frames: lists.next(p.FrameCounts[i])}
	})
}
