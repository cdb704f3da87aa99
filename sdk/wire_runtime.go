// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"math"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeRuntimeDescription(r *RuntimeDescription) *pb.RuntimeDescription {
	return &pb.RuntimeDescription{
		Name: r.Name, Version: r.Version, Symbols: r.Symbols, ThreadKind: r.ThreadKind, ThreadsOnly: r.ThreadsOnly, Feature: r.Feature,
		Recognises: column(r.Recognises, func(x *RuntimeRecogniser) *pb.RuntimeRecogniser {
			return &pb.RuntimeRecogniser{Section: x.Section, Symbol: x.Symbol, BuildId: x.BuildID}
		}),
		Types: column(r.Types, func(t *RuntimeType) *pb.RuntimeType {
			return &pb.RuntimeType{Unit: t.Unit, Name: t.Name, Members: t.Members}
		}),
		Constants: column(r.Constants, func(c *RuntimeConstants) *pb.RuntimeConstants {
			return &pb.RuntimeConstants{Unit: c.Unit, Prefix: c.Prefix}
		}),
	}
}

func decodeRuntimeDescription(p *pb.RuntimeDescription) (*RuntimeDescription, error) {
	return &RuntimeDescription{
		Name: p.GetName(), Version: p.GetVersion(), Symbols: p.GetSymbols(), ThreadKind: p.GetThreadKind(), ThreadsOnly: p.GetThreadsOnly(), Feature: p.GetFeature(),
		Recognises: column(p.GetRecognises(), func(x **pb.RuntimeRecogniser) RuntimeRecogniser {
			return RuntimeRecogniser{Section: (*x).GetSection(), Symbol: (*x).GetSymbol(), BuildID: (*x).GetBuildId()}
		}),
		Types: column(p.GetTypes(), func(t **pb.RuntimeType) RuntimeType {
			return RuntimeType{Unit: (*t).GetUnit(), Name: (*t).GetName(), Members: (*t).GetMembers()}
		}),
		Constants: column(p.GetConstants(), func(c **pb.RuntimeConstants) RuntimeConstants {
			return RuntimeConstants{Unit: (*c).GetUnit(), Prefix: (*c).GetPrefix()}
		}),
	}, nil
}

func encodeOpenRuntimeRequest(r *OpenRuntimeRequest) *pb.OpenRuntimeRequest {
	members := flat(r.Types, func(t *TypeLayout) []MemberPlace { return t.Members })
	return &pb.OpenRuntimeRequest{
		Runtime: r.Runtime, Object: r.Object, Path: []byte(r.Path), BuildId: r.BuildID,
		Machine: uint32(r.Machine), AddressBits: r.AddressBits, ByteOrder: pb.ByteOrder(r.ByteOrder),
		Pc: r.PC, Sp: r.SP, Fp: r.FP, ReturnAddress: r.ReturnAddress, HasDebugInfo: r.HasDebugInfo, MemorySize: r.MemorySize,
		Segments: &pb.RuntimeSegments{
			Addresses: column(r.Segments, func(s *RuntimeSegment) uint64 { return s.Address }),
			Sizes:     column(r.Segments, func(s *RuntimeSegment) uint64 { return s.Size }),
			Starts:    column(r.Segments, func(s *RuntimeSegment) uint64 { return s.Start }),
		},
		Sections: encodeSections(r.Sections),
		Symbols: &pb.SymbolPlaces{
			Known:     column(r.Symbols, func(s *SymbolPlace) bool { return s.IsKnown }),
			Addresses: column(r.Symbols, func(s *SymbolPlace) uint64 { return s.Address }),
			Sizes:     column(r.Symbols, func(s *SymbolPlace) uint64 { return s.Size }),
		},
		Types: &pb.TypeLayouts{
			Sizes:        column(r.Types, func(t *TypeLayout) uint64 { return t.Size }),
			Problems:     blobs(r.Types, func(t *TypeLayout) string { return t.Problem }),
			MemberCounts: column(r.Types, func(t *TypeLayout) uint32 { return uint32(len(t.Members)) }), //nolint:gosec // MaxDescriptionList
			Offsets:      column(members, func(m *MemberPlace) uint64 { return m.Offset }),
			MemberSizes:  column(members, func(m *MemberPlace) uint64 { return m.Size }),
		},
		Constants: &pb.NamedConstants{
			Names:  blobs(r.Constants, func(c *NamedConstant) string { return c.Name }),
			Values: column(r.Constants, func(c *NamedConstant) int64 { return c.Value }),
		},
		Threads: &pb.RuntimeThreads{
			Threads: column(r.Threads, func(t *RuntimeThread) uint64 { return t.Thread }),
			Ids:     blobs(r.Threads, func(t *RuntimeThread) string { return t.ID }),
			Names:   blobs(r.Threads, func(t *RuntimeThread) string { return t.Name }),
		},
	}
}

func decodeOpenRuntimeRequest(p *pb.OpenRuntimeRequest) (*OpenRuntimeRequest, error) {
	d := decoder{message: "OpenRuntimeRequest"}
	d.small("machine", p.GetMachine(), math.MaxUint16)
	r := &OpenRuntimeRequest{
		Runtime: p.GetRuntime(), Object: p.GetObject(), Path: d.text("path", string(p.GetPath())), BuildID: p.GetBuildId(),
		Machine: uint16(p.GetMachine()), AddressBits: p.GetAddressBits(), ByteOrder: enum(&d, "byte_order", p.GetByteOrder(), BigEndian), //nolint:gosec // checked above
		PC: p.GetPc(), SP: p.GetSp(), FP: p.GetFp(), ReturnAddress: p.GetReturnAddress(),
		HasDebugInfo: p.GetHasDebugInfo(), MemorySize: p.GetMemorySize(),
		Sections: decodeSections(&d, p.GetSections()),
		Types:    decodeTypeLayouts(&d, p.GetTypes()),
	}
	s := p.GetSegments()
	n := d.entries("segments.addresses", len(s.GetAddresses()))
	d.length("segments.sizes", len(s.GetSizes()), n)
	d.length("segments.starts", len(s.GetStarts()), n)
	r.Segments = listOf(&d, n, func(i int) RuntimeSegment {
		return RuntimeSegment{Address: s.Addresses[i], Size: s.Sizes[i], Start: s.Starts[i]}
	})
	y := p.GetSymbols()
	n = d.entries("symbols.known", len(y.GetKnown()))
	d.length("symbols.addresses", len(y.GetAddresses()), n)
	d.length("symbols.sizes", len(y.GetSizes()), n)
	r.Symbols = listOf(&d, n, func(i int) SymbolPlace {
		return SymbolPlace{IsKnown: y.Known[i], Address: y.Addresses[i], Size: y.Sizes[i]}
	})
	c := p.GetConstants()
	n = d.entries("constants.values", len(c.GetValues()))
	names := d.texts("constants.names", c.GetNames(), n)
	r.Constants = listOf(&d, n, func(i int) NamedConstant { return NamedConstant{Name: names.next(), Value: c.Values[i]} })
	t := p.GetThreads()
	n = d.entries("threads.threads", len(t.GetThreads()))
	ids, threadNames := d.texts("threads.ids", t.GetIds(), n), d.texts("threads.names", t.GetNames(), n)
	r.Threads = listOf(&d, n, func(i int) RuntimeThread {
		return RuntimeThread{Thread: t.Threads[i], ID: ids.next(), Name: threadNames.next()}
	})
	return result(&d, r)
}

func decodeTypeLayouts(d *decoder, p *pb.TypeLayouts) []TypeLayout {
	n := d.entries("types.sizes", len(p.GetSizes()))
	problems := d.texts("types.problems", p.GetProblems(), n)
	d.length("types.member_counts", len(p.GetMemberCounts()), n)
	m := d.entries("types.offsets", len(p.GetOffsets()))
	d.length("types.member_sizes", len(p.GetMemberSizes()), m)
	d.sum("types.member_counts", p.GetMemberCounts(), m)
	members := splitter[MemberPlace]{listOf(d, m, func(i int) MemberPlace { return MemberPlace{p.Offsets[i], p.MemberSizes[i]} })}
	return listOf(d, n, func(i int) TypeLayout {
		return TypeLayout{Size: p.Sizes[i], Problem: problems.next(), Members: members.next(p.MemberCounts[i])}
	})
}

func encodeOpenRuntimeAnswer(a *OpenRuntimeAnswer) *pb.OpenRuntimeAnswer {
	return &pb.OpenRuntimeAnswer{
		Version: a.Version, HasFrames: a.HasFrames, Threads: a.Threads, HasThreads: a.HasThreads, Problems: texts(a.Problems),
		Locks: encodeRuntimeLocks(a.Locks), Fatal: []byte(a.Fatal),
		Code: &pb.RuntimeCode{
			Starts: column(a.Code, func(c *RuntimeCode) uint64 { return c.Start }),
			Ends:   column(a.Code, func(c *RuntimeCode) uint64 { return c.End }),
			Names:  blobs(a.Code, func(c *RuntimeCode) string { return c.Name }),
		},
	}
}

func decodeOpenRuntimeAnswer(p *pb.OpenRuntimeAnswer) (*OpenRuntimeAnswer, error) {
	d := decoder{message: "OpenRuntimeAnswer"}
	a := &OpenRuntimeAnswer{
		Version: d.text("version", p.GetVersion()), HasFrames: p.GetHasFrames(), Threads: p.GetThreads(),
		HasThreads: p.GetHasThreads(), Problems: d.textList("problems", p.GetProblems()),
		Locks: decodeRuntimeLocks(&d, p.GetLocks()), Fatal: d.text("fatal", string(p.GetFatal())),
	}
	d.entries("threads", len(p.GetThreads()))
	c := p.GetCode()
	n := d.entries("code.starts", len(c.GetStarts()))
	d.length("code.ends", len(c.GetEnds()), n)
	names := d.texts("code.names", c.GetNames(), n)
	a.Code = listOf(&d, n, func(i int) RuntimeCode { return RuntimeCode{Start: c.Starts[i], End: c.Ends[i], Name: names.next()} })
	return result(&d, a)
}

func encodeRuntimeLocks(list []RuntimeLock) *pb.RuntimeLocks {
	if len(list) == 0 {
		return nil
	}
	return &pb.RuntimeLocks{
		Addresses:    column(list, func(l *RuntimeLock) uint64 { return l.Address }),
		Names:        blobs(list, func(l *RuntimeLock) string { return l.Name }),
		Holders:      column(list, func(l *RuntimeLock) uint64 { return l.Holder }),
		HasHolder:    column(list, func(l *RuntimeLock) bool { return l.HasHolder }),
		WaiterCounts: column(list, func(l *RuntimeLock) uint32 { return uint32(len(l.Waiters)) }), //nolint:gosec // a count
		Waiters:      flat(list, func(l *RuntimeLock) []uint64 { return l.Waiters }),
	}
}

func decodeRuntimeLocks(d *decoder, p *pb.RuntimeLocks) []RuntimeLock {
	n := d.entries("locks.addresses", len(p.GetAddresses()))
	names := d.texts("locks.names", p.GetNames(), n)
	d.length("locks.holders", len(p.GetHolders()), n)
	d.length("locks.has_holder", len(p.GetHasHolder()), n)
	d.length("locks.waiter_counts", len(p.GetWaiterCounts()), n)
	d.sum("locks.waiter_counts", p.GetWaiterCounts(), d.entries("locks.waiters", len(p.GetWaiters())))
	waiters := splitter[uint64]{p.GetWaiters()}
	return listOf(d, n, func(i int) RuntimeLock {
		return RuntimeLock{
			Address: p.Addresses[i], Name: names.next(), Holder: p.Holders[i], HasHolder: p.HasHolder[i],
			Waiters: waiters.next(p.WaiterCounts[i]),
		}
	})
}
