// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const examples = "../../../../examples/"

// targets are of every form that is in a file.
var targets = []string{"crash/server.core", "crash/server.dmp", "mixed/mixed.snapshot", "rocm-core/crash.core", "cuda-core/crash.core"}

func open(t testing.TB, path string) *engine.Target {
	t.Helper()
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New(), nvidia.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	target, err := e.Open(examples + path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestHeadSaysAllThatTheTargetSays compares what is read of a head with the target.
func TestHeadSaysAllThatTheTargetSays(t *testing.T) {
	for _, path := range targets {
		own := open(t, path)
		b, err := HeadOf(own, own.Labels(nil)).Encode()
		if err != nil {
			t.Fatal(err)
		}
		h, err := DecodeHead(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(h.Info, own.Info()) {
			t.Errorf("%s: %+v, expected %+v", path, h.Info, own.Info())
		}
		for i, th := range own.Threads() {
			if !reflect.DeepEqual(&h.Threads[i], th) {
				t.Errorf("%s: thread %+v, expected %+v", path, &h.Threads[i], th)
			}
		}
	}
}

// TestHeadKeepsWhatJSONWouldNot writes names of any bytes, and users and values of 0.
func TestHeadKeepsWhatJSONWouldNot(t *testing.T) {
	user := uint32(0)
	h := &Head{
		Version: headVersion, Threads: []trace.Thread{{ID: "1", Name: "caf\xc3"}},
		Info: trace.Target{Facts: &trace.Facts{Process: trace.Process{User: &user}, Handles: []trace.Handle{}, Crash: &trace.Crash{Sender: &trace.Sender{}}}},
	}
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeHead(b)
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Info.Facts; got.Threads[0].Name != "caf\xc3" || f.Process.User == nil || f.Handles == nil || f.Crash.Sender == nil {
		t.Errorf("%+v", got)
	}
}

// TestHeadsThatAreRefused has heads of hostile callers.
func TestHeadsThatAreRefused(t *testing.T) {
	for words, change := range map[string]func(*Head){
		"version 2":           func(h *Head) { h.Version = 2 },
		"handle 7":            func(h *Head) { h.Threads[0].Handle = 7 },
		"a goroutine":         func(h *Head) { h.Threads[0].Executes = &trace.Thread{} },
		"Registers.Offsets":   func(h *Head) { h.Threads[0].Registers.Numbers = []uint32{1} },
		"lanes":               func(h *Head) { h.Threads[0].Lanes = math.MaxUint32 },
		"registers 5 to":      func(h *Head) { h.Threads[0].Saved = []sdk.SavedRegisters{{First: 5, Count: math.MaxUint32}} },
		"its memory of":       func(h *Head) { h.Threads[0].Memory = []sdk.SpaceMemory{{Start: 5, Size: math.MaxUint64}} },
		"the state of lane 4": func(h *Head) { h.Threads[0].Lanes, h.Threads[0].LaneStates = 4, []sdk.LaneState{{Lane: 4}} },
		"no state of lane 1": func(h *Head) {
			h.Threads[0].Lanes, h.Threads[0].Lead, h.Threads[0].LaneStates = 4, 1, []sdk.LaneState{{Lane: 2}}
		},
		"lane 2: its memory": func(h *Head) {
			h.Threads[0].Lanes, h.Threads[0].Lead = 4, 2
			h.Threads[0].LaneStates = []sdk.LaneState{{Lane: 2, Memory: []sdk.SpaceMemory{{Start: 5, Size: math.MaxUint64}}}}
		},
		"its segment of":        func(h *Head) { h.Modules[0].Segments = []trace.Segment{{Start: 5, Size: math.MaxUint64}} },
		"its image of":          func(h *Head) { h.Modules[0].Base, h.Modules[0].Size = 5, math.MaxUint64 },
		"its code object has":   func(h *Head) { h.Modules[0].Object = &Object{Size: math.MaxUint64} },
		"16385 modules":         func(h *Head) { h.Modules = make([]Module, maxModules+1) },
		"number of elements":    func(h *Head) { h.Threads = make([]trace.Thread, maxThreads+1) },
		"exceeded max nested":   nil,
		"not the head of a tar": nil,
	} {
		b := bytes.Repeat([]byte{0x81}, 1000)
		if change != nil {
			h := &Head{Version: headVersion, Threads: make([]trace.Thread, 1), Modules: make([]Module, 1)}
			change(h)
			var err error
			if b, err = h.Encode(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := DecodeHead(b); !errors.Is(err, ErrHead) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, expected %q", err, words)
		}
	}
}

// asking is an Ask of a Responder, by way of the wire's bytes.
func asking(t testing.TB, k *Responder) Ask {
	return func(q *pb.Question) (*pb.Answer, string, error) {
		b, err := proto.Marshal(q)
		if err != nil {
			return nil, "", err
		}
		sent := &pb.Question{}
		if err := proto.Unmarshal(b, sent); err != nil {
			return nil, "", err
		}
		var last *pb.Answer
		var file []byte
		err = k.Answer(sent, func(a *pb.Answer) error {
			last = a
			file = append(file, a.GetFile().GetData()...)
			return nil
		})
		if err != nil || q.GetFile() == nil {
			return last, "", err
		}
		path := t.TempDir() + "/file"
		return last, path, os.WriteFile(path, file, 0o600)
	}
}

// TestMemoryIsThatOfTheTarget reads all around every place where memory begins or ends, in
// pieces of any size and order: bytes, how many there are, and errors are the target's.
func TestMemoryIsThatOfTheTarget(t *testing.T) {
	for _, path := range targets {
		own := open(t, path)
		k := NewResponder(own)
		host := &Host{}
		host.begin(asking(t, k), object.Finder{})
		far := &Target{host: host, head: HeadOf(own, own.Labels(nil)), threads: own.Threads(), mappings: map[mappingKey]*pb.MappingAnswer{}}
		far.memory.ask = host.question
		var places []uint64
		for _, m := range own.Process().Modules() {
			for _, s := range m.Segments {
				places = append(places, s.Start, s.Start+s.Size)
			}
		}
		for _, th := range own.Threads() {
			for i := 0; i+8 <= len(th.Registers.Data) && i < 300; i += 8 {
				value := uint64(0)
				for j := range 8 {
					value |= uint64(th.Registers.Data[i+j]) << (8 * j)
				}
				places = append(places, value)
			}
		}
		places = append(places, 0, math.MaxUint64)
		reads := 0
		for _, p := range places {
			for _, before := range []uint64{0, 1, 4000, 70_000} {
				for _, size := range []int{1, 8, 5000, 140_000} {
					want, got := make([]byte, size), make([]byte, size)
					n, err := own.Process().State().ReadMemory(locexpr.DefaultSpace, p-before, want)
					m, farErr := far.ReadMemory(locexpr.DefaultSpace, p-before, got)
					if n != m || !bytes.Equal(want[:n], got[:m]) || (err == nil) != (farErr == nil) || errors.Is(err, target.ErrNoMemory) != errors.Is(farErr, target.ErrNoMemory) {
						t.Fatalf("%s: %d bytes at %#x: %d and %v, expected %d and %v", path, size, p-before, m, farErr, n, err)
					}
					if err != nil && err.Error() != farErr.Error() {
						t.Fatalf("%s: %d bytes at %#x: %v, expected %v", path, size, p-before, farErr, err)
					}
					if n > 0 {
						reads++
					}
				}
			}
			mapped, executable := own.Process().State().Mapped(p)
			if m, e := far.Mapped(p); m != mapped || e != executable {
				t.Errorf("%s: %#x is mapped %v, %v, expected %v, %v", path, p, m, e, mapped, executable)
			}
			if mapper, ok := own.Process().State().(target.Mapper); ok {
				below, at, above := mapper.Around(p)
				b, a, c := far.Around(p)
				if !reflect.DeepEqual([]*target.Mapping{below, at, above}, []*target.Mapping{b, a, c}) {
					t.Errorf("%s: around %#x: %+v %+v %+v", path, p, b, a, c)
				}
			}
		}
		reads += readLanes(t, path, own.Process().State(), far)
		if reads < 20 || host.Err() != nil {
			t.Errorf("%s: %d reads had bytes; %v", path, reads, host.Err())
		}
		k.Close()
	}
}

// readLanes reads the memory that lanes have of their own, and returns how often bytes were there.
func readLanes(t *testing.T, path string, own target.Target, far *Target) (reads int) {
	scoped, _ := own.(target.ScopedMemory)
	for _, th := range own.Threads() {
		for _, l := range th.LaneStates {
			of := target.OfLane(th, l.Lane)
			for _, m := range l.Memory {
				want, got := make([]byte, 64), make([]byte, 64)
				for _, address := range []uint64{m.Start, m.Start + m.Size - 32} {
					n, _ := scoped.ReadScoped(m.Space, of, address, want)
					if k, err := far.ReadScoped(m.Space, of, address, got); k != n || !bytes.Equal(want[:n], got[:k]) {
						t.Errorf("%s: lane %d of %s at %#x: %d bytes %x, %v; expected %d, %x", path, l.Lane, th.ID, address, k, got[:k], err, n, want[:n])
					}
					reads++
				}
			}
		}
	}
	return reads
}

// TestResponderGivesNothingElse asks for what no module has, and for what no server asks.
func TestResponderGivesNothingElse(t *testing.T) {
	own := open(t, "crash/server.core")
	k := NewResponder(own)
	defer k.Close()
	thread := uint64(99)
	for _, q := range []*pb.Question{
		{},
		{About: &pb.Question_Memory{Memory: &pb.MemoryQuestion{Size: 1}}},
		{About: &pb.Question_Memory{Memory: &pb.MemoryQuestion{Size: 1, Most: 3}}},
		{About: &pb.Question_Memory{Memory: &pb.MemoryQuestion{Size: 1, Most: 1 << 31}}},
		{About: &pb.Question_Memory{Memory: &pb.MemoryQuestion{Size: 2, Most: 1}}},
		{About: &pb.Question_Memory{Memory: &pb.MemoryQuestion{Size: 1, Most: 1, Thread: &thread}}},
		{About: &pb.Question_Debug{Debug: &pb.DebugQuestion{Module: math.MaxUint32}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Module: math.MaxUint32}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_SOURCE_MODULE}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_DEBUG}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: pb.FileQuestion_COMPANION, Suffix: "/../../../etc/passwd"}}},
		{About: &pb.Question_File{File: &pb.FileQuestion{Kind: 77}}},
	} {
		answers := 0
		err := k.Answer(q, func(a *pb.Answer) error {
			if answers++; a.GetFailure() == "" {
				t.Errorf("%v: %v", q, a)
			}
			return nil
		})
		if err != nil || answers != 1 {
			t.Errorf("%v: %d answers, %v", q, answers, err)
		}
	}
}

// FuzzHead reads heads, and writes again what it took.
func FuzzHead(f *testing.F) {
	for _, path := range targets {
		b, err := HeadOf(open(f, path), nil).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHead(b)
		if err != nil {
			return
		}
		again, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeHead(again); err != nil {
			t.Error(err)
		}
	})
}

// FuzzAnswer has answers of a hostile machine: what is read is never more than was asked
// for, and less of it is an error.
func FuzzAnswer(f *testing.F) {
	for _, a := range []*pb.Answer{
		{About: &pb.Answer_Memory{Memory: &pb.MemoryAnswer{Address: 0x10000, Data: make([]byte, 300), Kind: pb.MemoryAnswer_ABSENT, Error: []byte("x")}}},
		{About: &pb.Answer_Memory{Memory: &pb.MemoryAnswer{Address: 0x10010, Data: make([]byte, 1)}}},
		{About: &pb.Answer_Debug{Debug: &pb.DebugAnswer{Found: true}}},
		{About: &pb.Answer_Failure{Failure: "x"}},
	} {
		b, err := proto.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint64(0x10008), uint16(100), b)
	}
	f.Fuzz(func(t *testing.T, address uint64, size uint16, b []byte) {
		host := &Host{}
		questions := 0
		host.begin(func(*pb.Question) (*pb.Answer, string, error) {
			if questions++; questions > 1000 {
				t.Fatal("it asks without end")
			}
			a := &pb.Answer{}
			return a, "", proto.Unmarshal(b, a)
		}, object.Finder{})
		far := &Target{host: host, head: &Head{}, mappings: map[mappingKey]*pb.MappingAnswer{}}
		far.memory.ask = host.question
		buf := make([]byte, size)
		n, err := far.ReadMemory(locexpr.DefaultSpace, address, buf)
		if n < 0 || n > len(buf) || n < len(buf) && err == nil {
			t.Errorf("%d of %d bytes, %v", n, len(buf), err)
		}
		far.Around(address)
		if _, err := host.findDebug(nil, 0, &object.Finder{}); err == nil && questions == 0 {
			t.Error("nobody was asked")
		}
	})
}
