// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// seed fills a message and returns it as it goes over the wire.
func seed[M any, P proto.Message](f *testing.F, encode func(*M) (P, error)) {
	m := new(M)
	fullFiller().fill(reflect.ValueOf(m).Elem())
	p, err := encode(m)
	if err != nil {
		f.Fatal(err)
	}
	b, err := proto.Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}

// sureBytes is a message as it goes over the wire.
func sureBytes(p proto.Message) []byte {
	b, err := proto.Marshal(p)
	if err != nil {
		panic(err)
	}
	return b
}

func FuzzDecodeRows(f *testing.F) {
	d := testDescription()
	f.Add([]byte{})
	seed(f, sure(encodeFrameRulesAnswer))
	f.Add(sureBytes(encodeFrameRulesAnswer(&FrameRulesAnswer{Functions: []FrameRules{
		{Gaps: []RowGap{{1, 101, "none"}}}, {Gaps: []RowGap{{1 << 63, 1<<63 + 4, "dead"}, {1<<63 + 8, 1<<63 + 100, "lost"}}, Complete: true},
	}})))
	req := &FrameRulesRequest{Functions: []CodeRange{{Start: 1, Code: make([]byte, 100)}, {Start: 1 << 63, Code: make([]byte, 100)}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.FrameRulesAnswer
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		a, err := decodeFrameRulesAnswer(&p)
		if err != nil {
			return
		}
		if a.Validate(d, req) == nil {
			for i := range a.Functions {
				checkGapsAreBesideRows(t, &a.Functions[i], &req.Functions[i])
			}
		}
		again, err := decodeFrameRulesAnswer(encodeFrameRulesAnswer(a))
		if err != nil || !reflect.DeepEqual(a, again) {
			t.Fatalf("%+v\n%+v\n%v", a, again, err)
		}
	})
}

// checkGapsAreBesideRows checks that a valid answer says one thing of every PC.
func checkGapsAreBesideRows(t *testing.T, f *FrameRules, asked *CodeRange) {
	for offset := range uint64(len(asked.Code)) {
		pc, said := asked.Start+offset, 0
		for i := range f.Rows {
			if pc >= f.Rows[i].Start && pc < f.Rows[i].End {
				said++
			}
		}
		for i := range f.Gaps {
			if pc >= f.Gaps[i].Start && pc < f.Gaps[i].End {
				said++
			}
		}
		if said > 1 {
			t.Fatalf("%#x is in %d rows and gaps: %+v", pc, said, *f)
		}
	}
}

func FuzzDecodeRegisters(f *testing.F) {
	f.Add([]byte{})
	seed(f, encodeBindThreadsRequest)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.BindThreadsRequest
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		r, err := decodeBindThreadsRequest(&p)
		if err != nil {
			return
		}
		d := testDescription()
		_ = DefaultBindThreads(d, r).Validate(d, r)
		for i := range r.Threads {
			registers := &r.Threads[i].Registers
			if err := registers.Validate(); err != nil {
				t.Fatal(err)
			}
			// What one thread sets, no other sees.
			if i+1 < len(r.Threads) {
				before := r.Threads[i+1].Registers.Clone()
				registers.Set(7, []byte{1, 2, 3})
				registers.Set(3, []byte{4})
				if err := registers.Validate(); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(before, r.Threads[i+1].Registers.Clone()) {
					t.Fatal("setting a register changed another thread")
				}
			}
		}
	})
}

func FuzzDecodeOpenObject(f *testing.F) {
	d := testDescription()
	f.Add([]byte{})
	seed(f, encodeOpenObjectAnswer)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.OpenObjectAnswer
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		if a, err := decodeOpenObjectAnswer(&p); err == nil {
			_ = a.Validate(d, &OpenObjectRequest{})
		}
	})
}

func FuzzDecodeBindThreads(f *testing.F) {
	d := testDescription()
	f.Add([]byte{})
	seed(f, sure(encodeBindThreadsAnswer))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.BindThreadsAnswer
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		if a, err := decodeBindThreadsAnswer(&p); err == nil {
			_ = a.Validate(d, &BindThreadsRequest{Threads: make([]ThreadState, len(a.Threads))})
		}
	})
}

func FuzzDecodeDescription(f *testing.F) {
	f.Add([]byte{})
	seed(f, sure(encodeDescription))
	if b, err := proto.Marshal(encodeDescription(testDescription())); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.Description
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		d, err := decodeDescription(&p)
		if err != nil || d.Validate() != nil {
			return
		}
		// What is valid can be used.
		for i := range d.RegisterSets {
			var r Registers
			d.RegisterSets[i].Decode(make([]byte, 1000), &r)
			d.RegisterSets[i].DecodeSample(^uint64(0), make([]byte, 512), &r)
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range d.Registers {
			r := &d.Registers[i]
			for _, n := range []uint32{r.First, r.First + r.Count - 1} {
				info, ok := d.Register(n)
				if !ok {
					t.Fatalf("register %d is not found", n)
				}
				if _, ok := d.RegisterByName(info.Name); !ok {
					t.Fatalf("register %q is not found", info.Name)
				}
			}
		}
	})
}

func FuzzDecodeRuntimeAnswers(f *testing.F) {
	f.Add([]byte{})
	seed(f, sure(encodeOpenRuntimeAnswer))
	seed(f, encodeCodeRulesAnswer)
	seed(f, encodeManagedFramesAnswer)
	seed(f, func(t *ManagedThread) (*pb.ManagedThreadsPart, error) {
		return encodeManagedThreads([]ManagedThread{*t})
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		checkRuntimeAnswer(t, b, decodeOpenRuntimeAnswer, sure(encodeOpenRuntimeAnswer), func(a *OpenRuntimeAnswer) error {
			return a.Validate(nil, &OpenRuntimeRequest{Threads: []RuntimeThread{{Thread: 1}, {Thread: 2}}})
		})
		checkRuntimeAnswer(t, b, decodeCodeRulesAnswer, encodeCodeRulesAnswer, func(a *CodeRulesAnswer) error {
			return a.Validate(nil, &CodeRulesRequest{PCs: []uint64{1, 0x1000}})
		})
		checkRuntimeAnswer(t, b, decodeManagedFramesAnswer, encodeManagedFramesAnswer, func(a *ManagedFramesAnswer) error {
			return a.Validate(nil, &ManagedFramesRequest{Threads: []NativeStack{{Frames: make([]NativeFrame, 3)}, {}}})
		})
		checkRuntimeAnswer(t, b, func(p *pb.ManagedThreadsPart) (*ManagedThreadsAnswer, error) {
			a := &ManagedThreadsAnswer{}
			return a, addManagedThreads(a, p)
		}, func(a *ManagedThreadsAnswer) (*pb.ManagedThreadsPart, error) {
			p, err := encodeManagedThreads(a.Threads)
			if err == nil {
				p.AnswerProblems = texts(a.Problems)
			}
			return p, err
		}, func(a *ManagedThreadsAnswer) error {
			return cmp.Or(a.Validate(nil, nil), a.ValidateRegisters(testDescription()))
		})
	})
}

// checkRuntimeAnswer checks that a message that can be decoded can be judged, and survives
// the trip.
func checkRuntimeAnswer[A, P any, PP interface {
	*P
	proto.Message
}](t *testing.T, b []byte, decode func(PP) (*A, error), encode func(*A) (PP, error), validate func(*A) error,
) {
	t.Helper()
	var p P
	if proto.Unmarshal(b, PP(&p)) != nil {
		return
	}
	a, err := decode(PP(&p))
	if err != nil {
		return
	}
	_ = validate(a)
	back, err := encode(a)
	if err != nil {
		return // deeper than an answer may be
	}
	again, err := decode(back)
	if err != nil || !reflect.DeepEqual(a, again) {
		t.Fatalf("%+v\n%+v\n%v", a, again, err)
	}
}
