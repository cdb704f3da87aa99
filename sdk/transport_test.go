// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/unwindd/unwindd/cfi"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// dial connects a Client to an architecture in this process, over a socket.
func dial(t *testing.T, arch Architecture) *Client {
	t.Helper()
	return dialServer(t, &architectureServer{arch: arch, host: host{log: io.Discard}})
}

// dialServer connects a Client to a server in this process.
func dialServer(t *testing.T, server pb.ArchitectureServer) *Client {
	t.Helper()
	c, _ := dialConn(t, server)
	return c
}

// dialConn is dialServer, with the connection.
func dialConn(t *testing.T, server pb.ArchitectureServer) (*Client, *grpc.ClientConn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(serverLimits...)
	pb.RegisterArchitectureServer(s, server)
	go s.Serve(l)
	conn, err := grpc.NewClient("unix:"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	gone, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		end()
		_ = conn.Close()
		s.Stop()
	})
	return NewClient(gone, conn, time.Minute), conn
}

// checkLeaks fails the test when it leaves goroutines behind. It comes first,
// so that its clean-up comes last.
func checkLeaks(t *testing.T) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}

// testArch answers calls by its functions, and else as Base does.
type testArch struct {
	Base
	describe    func(context.Context) (*Description, error)
	openTarget  func(context.Context, Engine, *OpenTargetRequest) (*OpenTargetAnswer, error)
	openObject  func(context.Context, Engine, *OpenObjectRequest) (*OpenObjectAnswer, error)
	frameRules  func(context.Context, Engine, *FrameRulesRequest) (*FrameRulesAnswer, error)
	disassemble func(context.Context, *DisassembleRequest) (*DisassembleAnswer, error)
}

func (a *testArch) Describe(ctx context.Context) (*Description, error) {
	if a.describe != nil {
		return a.describe(ctx)
	}
	return testDescription(), nil
}

func (a *testArch) OpenTarget(ctx context.Context, e Engine, req *OpenTargetRequest) (*OpenTargetAnswer, error) {
	if a.openTarget != nil {
		return a.openTarget(ctx, e, req)
	}
	return a.Base.OpenTarget(ctx, e, req)
}

func (a *testArch) OpenObject(ctx context.Context, e Engine, req *OpenObjectRequest) (*OpenObjectAnswer, error) {
	if a.openObject != nil {
		return a.openObject(ctx, e, req)
	}
	return a.Base.OpenObject(ctx, e, req)
}

func (a *testArch) FrameRules(ctx context.Context, e Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
	if a.frameRules != nil {
		return a.frameRules(ctx, e, req)
	}
	return a.Base.FrameRules(ctx, e, req)
}

func (a *testArch) Disassemble(ctx context.Context, req *DisassembleRequest) (*DisassembleAnswer, error) {
	if a.disassemble != nil {
		return a.disassemble(ctx, req)
	}
	return a.Base.Disassemble(ctx, req)
}

// testEngine is memory from address 0 on, one section, and registers by thread.
type testEngine struct {
	memory   []byte
	section  []byte
	block    chan struct{} // reads wait for it, or for their context
	entered  chan struct{}
	finished chan struct{}
}

var errUnmapped = errors.New("address is not in the target")

func (e *testEngine) ReadMemory(ctx context.Context, m MemoryRange, buf []byte) (int, error) {
	if e.block != nil {
		e.entered <- struct{}{}
		defer func() { e.finished <- struct{}{} }()
		select {
		case <-e.block:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if m.Address >= uint64(len(e.memory)) {
		return 0, fmt.Errorf("%#x: %w", m.Address, errUnmapped)
	}
	n := copy(buf, e.memory[m.Address:])
	if n < len(buf) {
		return n, fmt.Errorf("%#x: %w", m.Address+uint64(n), errUnmapped)
	}
	return n, nil
}

func (e *testEngine) ReadRegisters(_ context.Context, thread uint64, numbers []uint32) (Registers, error) {
	var r Registers
	for _, n := range numbers {
		r.Set(n, []byte(fmt.Sprint(thread, n)))
	}
	return r, nil
}

func (e *testEngine) ReadSection(_ context.Context, object uint64, name string) ([]byte, error) {
	if name != ".data" || object != 7 {
		return nil, fmt.Errorf("object %d has no section %s", object, name)
	}
	return e.section, nil
}

func TestCallsOverTheTransportAnswerAsInProcess(t *testing.T) {
	checkLeaks(t)
	ctx := context.Background()
	arch := &testArch{}
	c := dial(t, arch)
	e := &testEngine{}

	d, err := c.Describe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	described := testDescription()
	described.Feature = Feature // Serve says so for every plugin
	if diff := cmp.Diff(described, d); diff != "" {
		t.Error(diff)
	}
	if a, err := c.OpenTarget(ctx, e, &OpenTargetRequest{}); err != nil || !cmp.Equal(a, &OpenTargetAnswer{}) {
		t.Errorf("OpenTarget: %v %v", a, err)
	}
	if a, err := c.OpenObject(ctx, e, &OpenObjectRequest{}); err != nil || !cmp.Equal(a, &OpenObjectAnswer{}) {
		t.Errorf("OpenObject: %v %v", a, err)
	}
	if a, err := c.FrameRules(ctx, e, &FrameRulesRequest{Functions: make([]CodeRange, 2)}); err != nil || len(a.Functions) != 2 || a.Functions[1].Reason == "" {
		t.Errorf("FrameRules: %v %v", a, err)
	}
	request := &ClassifyReturnRequest{PCs: []uint64{1, 2}, Offsets: []uint32{0, 1, 2}, Code: []byte{1, 2}}
	if a, err := c.ClassifyReturn(ctx, request); err != nil || len(a.Classes) != 2 || len(a.Targets) != 2 {
		t.Errorf("ClassifyReturn: %v %v", a, err)
	}
	if _, err := c.Translate(ctx, e, &TranslateRequest{}); !errors.Is(err, ErrNotImplemented) {
		t.Errorf("Translate: %v", err)
	}
	if _, err := c.Disassemble(ctx, &DisassembleRequest{}); !errors.Is(err, ErrNotImplemented) {
		t.Errorf("Disassemble: %v", err)
	}
	var with, without Registers
	with.Set(9, []byte{0xef, 0xbe, 0, 0, 0, 0, 0, 0})
	without.Set(8, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	bound, err := c.BindThreads(ctx, e, &BindThreadsRequest{Threads: []ThreadState{{Registers: with}, {Registers: without}}})
	if err != nil {
		t.Fatal(err)
	}
	want := &BindThreadsAnswer{Threads: []ThreadBinding{
		{PC: 0xbeef, Lanes: 1},
		{Lanes: 1, Problem: "the PC, register pc, is not among the thread's registers"},
	}}
	if diff := cmp.Diff(want, bound); diff != "" {
		t.Error(diff)
	}
}

func TestObjectThatIsNotOpenIsToldOverTheTransport(t *testing.T) {
	checkLeaks(t)
	c := dial(t, &testArch{frameRules: func(_ context.Context, _ Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
		if req.Object == 1 {
			return nil, errors.New("object 0x1: another error")
		}
		return nil, fmt.Errorf("object %#x: %w", req.Object, ErrObjectNotOpen)
	}})
	for object, want := range map[uint64]bool{1: false, 2: true} {
		_, err := c.FrameRules(context.Background(), nil, &FrameRulesRequest{Object: object})
		if errors.Is(err, ErrObjectNotOpen) != want || errors.Is(err, ErrNotImplemented) || !strings.Contains(err.Error(), fmt.Sprintf("object %#x", object)) {
			t.Errorf("object %d: %v", object, err)
		}
	}
}

func TestBigAnswersComeInParts(t *testing.T) {
	checkLeaks(t)
	rows := make([]cfi.Row, 2*partRows+17)
	for i := range rows {
		rows[i] = cfi.Row{
			Start: uint64(i), End: uint64(i) + 1,
			CFA:   cfi.CFARule{Kind: cfi.CFARegister, Register: 8, Offset: int64(i)},
			Rules: []cfi.RegisterRule{{Column: 9, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}},
		}
	}
	object := &OpenObjectAnswer{Tables: []RowTable{{Rows: rows}, {Priority: OverridesCFI, Reason: "because"}, {Rows: rows[:3]}}}
	target := &OpenTargetAnswer{Threads: make([]TargetThread, 3)}
	for i := range target.Threads {
		target.Threads[i].ID = fmt.Sprint(i)
		for n := range uint32(20) {
			target.Threads[i].Registers.Set(n, bytes.Repeat([]byte{byte(i), byte(n)}, 1<<15))
		}
	}
	c := dial(t, &testArch{
		openObject: func(context.Context, Engine, *OpenObjectRequest) (*OpenObjectAnswer, error) { return object, nil },
		openTarget: func(context.Context, Engine, *OpenTargetRequest) (*OpenTargetAnswer, error) { return target, nil },
	})
	gotObject, err := c.OpenObject(context.Background(), nil, &OpenObjectRequest{})
	if err != nil {
		t.Fatal(err)
	}
	// cmp takes seconds for so many rows.
	if !reflect.DeepEqual(object, gotObject) {
		t.Error("OpenObject: the answer is another")
	}
	gotTarget, err := c.OpenTarget(context.Background(), nil, &OpenTargetRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(target, gotTarget) {
		t.Error("OpenTarget: the answer is another")
	}
}

func TestPluginReadsFromTheEngineDuringACall(t *testing.T) {
	checkLeaks(t)
	e := &testEngine{memory: make([]byte, 3*partSize+100), section: make([]byte, 10*partSize+1)}
	for i := range e.memory {
		e.memory[i] = byte(i * 7)
	}
	for i := range e.section {
		e.section[i] = byte(i * 13)
	}
	c := dial(t, &testArch{frameRules: func(ctx context.Context, remote Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
		buf := make([]byte, 2*partSize+50)
		if n, err := remote.ReadMemory(ctx, MemoryRange{Address: 3}, buf); n != len(buf) || err != nil {
			return nil, fmt.Errorf("ReadMemory: %d %w", n, err)
		}
		if !bytes.Equal(buf, e.memory[3:3+len(buf)]) {
			return nil, errors.New("ReadMemory: other bytes")
		}
		n, err := remote.ReadMemory(ctx, MemoryRange{Address: partSize + 150}, buf)
		if n != 2*partSize-50 || err == nil || !strings.HasSuffix(err.Error(), errUnmapped.Error()) || !bytes.Equal(buf[:n], e.memory[partSize+150:]) {
			return nil, fmt.Errorf("ReadMemory to the end: %d %w", n, err)
		}
		if n, err := remote.ReadMemory(ctx, MemoryRange{Address: 1 << 40}, buf); n != 0 || err == nil {
			return nil, fmt.Errorf("ReadMemory of nothing: %d %w", n, err)
		}
		r, err := remote.ReadRegisters(ctx, 5, []uint32{1, 2})
		if err != nil {
			return nil, err
		}
		if v, _ := r.Get(2); string(v) != "5 2" {
			return nil, fmt.Errorf("ReadRegisters: %q", v)
		}
		section, err := remote.ReadSection(ctx, 7, ".data")
		if err != nil || !bytes.Equal(section, e.section) {
			return nil, fmt.Errorf("ReadSection: %d bytes %w", len(section), err)
		}
		_, err = remote.ReadSection(ctx, 7, ".none")
		if err == nil || err.Error() != "object 7 has no section .none" {
			return nil, fmt.Errorf("ReadSection of none: %w", err)
		}
		return &FrameRulesAnswer{}, nil
	}})
	if _, err := c.FrameRules(context.Background(), e, &FrameRulesRequest{}); err != nil {
		t.Fatal(err)
	}
}

func TestCallWithoutAnEngineIsToldSo(t *testing.T) {
	checkLeaks(t)
	c := dial(t, &testArch{frameRules: func(ctx context.Context, e Engine, _ *FrameRulesRequest) (*FrameRulesAnswer, error) {
		if _, err := e.ReadMemory(ctx, MemoryRange{}, nil); err == nil {
			return nil, errors.New("memory was read")
		}
		if _, err := e.ReadRegisters(ctx, 0, nil); err == nil {
			return nil, errors.New("registers were read")
		}
		if _, err := e.ReadSection(ctx, 0, ""); err == nil {
			return nil, errors.New("a section was read")
		}
		return &FrameRulesAnswer{}, nil
	}})
	if _, err := c.FrameRules(context.Background(), nil, &FrameRulesRequest{}); err != nil {
		t.Fatal(err)
	}
}

func TestSessionThatIsOverIsNotFound(t *testing.T) {
	checkLeaks(t)
	var kept Engine
	c := dial(t, &testArch{frameRules: func(_ context.Context, e Engine, _ *FrameRulesRequest) (*FrameRulesAnswer, error) {
		kept = e
		return &FrameRulesAnswer{}, nil
	}})
	if _, err := c.FrameRules(context.Background(), &testEngine{memory: []byte{1}}, &FrameRulesRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err := kept.ReadMemory(context.Background(), MemoryRange{}, make([]byte, 1))
	if status.Code(errors.Unwrap(err)) != codes.NotFound {
		t.Errorf("ReadMemory: %v", err)
	}
	_, err = kept.ReadRegisters(context.Background(), 0, nil)
	if status.Code(errors.Unwrap(err)) != codes.NotFound {
		t.Errorf("ReadRegisters: %v", err)
	}
	_, err = kept.ReadSection(context.Background(), 7, ".data")
	if status.Code(errors.Unwrap(err)) != codes.NotFound {
		t.Errorf("ReadSection: %v", err)
	}
}

func TestCallReturnsOnlyWhenNothingReadsFromItsEngine(t *testing.T) {
	checkLeaks(t)
	e := &testEngine{block: make(chan struct{}), entered: make(chan struct{}, 1), finished: make(chan struct{}, 1)}
	c := dial(t, &testArch{frameRules: func(_ context.Context, remote Engine, _ *FrameRulesRequest) (*FrameRulesAnswer, error) {
		// A read that outlives the call that it belongs to.
		go remote.ReadMemory(context.Background(), MemoryRange{}, make([]byte, 1))
		<-e.entered
		return &FrameRulesAnswer{}, nil
	}})
	if _, err := c.FrameRules(context.Background(), e, &FrameRulesRequest{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.finished:
	default:
		t.Error("the call returned while its engine was being read")
	}
}

func TestCancellingEndsACallAndItsReads(t *testing.T) {
	checkLeaks(t)
	ended := make(chan error, 2)
	c := dial(t, &testArch{
		frameRules: func(ctx context.Context, remote Engine, _ *FrameRulesRequest) (*FrameRulesAnswer, error) {
			_, err := remote.ReadMemory(ctx, MemoryRange{}, make([]byte, 1))
			ended <- err
			return nil, err
		},
		openObject: func(ctx context.Context, _ Engine, _ *OpenObjectRequest) (*OpenObjectAnswer, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
	})
	e := &testEngine{block: make(chan struct{}), entered: make(chan struct{}, 1), finished: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-e.entered
		cancel()
	}()
	if _, err := c.FrameRules(ctx, e, &FrameRulesRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("FrameRules: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the plugin's read was not ended")
	}
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.OpenObject(ctx, e, &OpenObjectRequest{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("OpenObject: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the plugin's call was not ended")
	}
}

func TestConcurrentCallsKeepTheirEnginesApart(t *testing.T) {
	checkLeaks(t)
	c := dial(t, &testArch{frameRules: func(ctx context.Context, e Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
		buf := make([]byte, 8)
		for range 20 {
			if _, err := e.ReadMemory(ctx, MemoryRange{}, buf); err != nil {
				return nil, err
			}
			if buf[0] != byte(req.Object) {
				return nil, fmt.Errorf("call %d read the memory of %d", req.Object, buf[0])
			}
		}
		return &FrameRulesAnswer{}, nil
	}})
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			e := &testEngine{memory: bytes.Repeat([]byte{byte(i)}, 8)}
			if _, err := c.FrameRules(context.Background(), e, &FrameRulesRequest{Object: uint64(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestPanicIsTheErrorOfItsCallAlone(t *testing.T) {
	checkLeaks(t)
	c := dial(t, &testArch{
		frameRules: func(context.Context, Engine, *FrameRulesRequest) (*FrameRulesAnswer, error) {
			panic("out of its depth")
		},
		openObject: func(context.Context, Engine, *OpenObjectRequest) (*OpenObjectAnswer, error) {
			var a *OpenObjectAnswer
			a.Problems = nil
			return a, nil
		},
		openTarget: func(context.Context, Engine, *OpenTargetRequest) (*OpenTargetAnswer, error) { return nil, nil },
	})
	_, err := c.FrameRules(context.Background(), nil, &FrameRulesRequest{})
	var remote *RemoteError
	if !errors.As(err, &remote) || !remote.Panicked || remote.Call != "FrameRules" || remote.Message != "out of its depth" {
		t.Errorf("FrameRules: %#v", err)
	}
	if !strings.HasPrefix(remote.Place, "sdk.TestPanicIsTheErrorOfItsCallAlone.func1 (transport_test.go:") || !strings.HasSuffix(remote.Error(), remote.Place) {
		t.Errorf("the place of the panic is %q in %v", remote.Place, remote)
	}
	if _, err = c.OpenObject(context.Background(), nil, &OpenObjectRequest{}); !errors.As(err, &remote) || !remote.Panicked {
		t.Errorf("OpenObject: %#v", err)
	}
	if _, err = c.OpenTarget(context.Background(), nil, &OpenTargetRequest{}); !errors.As(err, &remote) || remote.Panicked {
		t.Errorf("OpenTarget: %#v", err)
	}
	if _, err := c.Describe(context.Background()); err != nil {
		t.Errorf("the plugin did not survive: %v", err)
	}
}

func TestRowsAreBoundedByTheCode(t *testing.T) {
	checkLeaks(t)
	rows := func(n int) []cfi.Row {
		list := make([]cfi.Row, n)
		for i := range list {
			list[i] = cfi.Row{Start: uint64(i), End: uint64(i) + 1, CFA: cfi.CFARule{Kind: cfi.CFARegister}}
		}
		return list
	}
	give := 0
	c := dial(t, &testArch{
		openObject: func(context.Context, Engine, *OpenObjectRequest) (*OpenObjectAnswer, error) {
			return &OpenObjectAnswer{Tables: []RowTable{{Rows: rows(give / 2)}, {Rows: rows(give - give/2)}}}, nil
		},
	})
	text := func(size uint64) []SectionInfo {
		return []SectionInfo{{}, {Name: ".text", Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Size: size}, {Name: ".data", Flags: uint64(elf.SHF_ALLOC), Size: 1 << 40}}
	}
	for _, m := range []struct {
		sections []SectionInfo
		most     int
	}{{text(1), minRows}, {text(minRows + 10), minRows + 10}, {nil, maxRowsUnknown}, {text(math.MaxUint64), MaxBatch}} {
		if got := maxRows(&OpenObjectRequest{Sections: m.sections}); got != m.most {
			t.Errorf("%v: at most %d rows, expected %d", m.sections, got, m.most)
		}
		if m.most > minRows+10 {
			continue // it takes long
		}
		for _, give = range []int{m.most, m.most + 1} {
			a, err := c.OpenObject(context.Background(), nil, &OpenObjectRequest{Sections: m.sections})
			if give > m.most {
				if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "TableRows.rows: 1 more than the object can have") {
					t.Errorf("%d rows: %v", give, err)
				}
			} else if err != nil || len(a.Tables[0].Rows)+len(a.Tables[1].Rows) != give {
				t.Errorf("%d rows: %v", give, err)
			}
		}
	}
}

func TestErrorOfAnArchitectureKeepsItsWords(t *testing.T) {
	checkLeaks(t)
	long := strings.Repeat("x", 1<<20)
	message := "section .foo, offset 0x12: expected \xff"
	c := dial(t, &testArch{
		frameRules: func(context.Context, Engine, *FrameRulesRequest) (*FrameRulesAnswer, error) {
			return nil, errors.New(message)
		},
		openObject: func(context.Context, Engine, *OpenObjectRequest) (*OpenObjectAnswer, error) {
			return nil, errors.New(long)
		},
		openTarget: func(context.Context, Engine, *OpenTargetRequest) (*OpenTargetAnswer, error) {
			return &OpenTargetAnswer{Threads: []TargetThread{{Registers: Registers{Numbers: []uint32{1}}}}}, nil
		},
		disassemble: func(context.Context, *DisassembleRequest) (*DisassembleAnswer, error) {
			return &DisassembleAnswer{Instructions: []Instruction{{Text: strings.Repeat("x", maxAnswer)}}}, nil
		},
	})
	_, err := c.FrameRules(context.Background(), nil, &FrameRulesRequest{})
	var remote *RemoteError
	if !errors.As(err, &remote) || remote.Message != "section .foo, offset 0x12: expected \uFFFD" {
		t.Errorf("FrameRules: %v", err)
	}
	if _, err := c.OpenObject(context.Background(), nil, &OpenObjectRequest{}); !errors.As(err, &remote) || len(remote.Message) > 2*maxMessage {
		t.Errorf("OpenObject: %.100v", err)
	}
	if _, err := c.OpenTarget(context.Background(), nil, &OpenTargetRequest{}); !errors.As(err, &remote) || !strings.Contains(remote.Message, "Registers.Offsets") {
		t.Errorf("OpenTarget: %.100v", err)
	}
	if _, err := c.Disassemble(context.Background(), &DisassembleRequest{}); !errors.As(err, &remote) || !strings.Contains(remote.Message, "expected at most") {
		t.Errorf("Disassemble: %.100v", err)
	}
}

func TestMain(m *testing.M) {
	served := map[string]Architecture{"reads": &processArch{}, "bench": &benchArch{}, "talks": &talkingArch{}}
	if arch := served[os.Getenv("SDK_TEST_SERVE")]; arch != nil {
		Serve(arch)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// featureArch has a Version that says which features the engine knows.
type featureArch struct{ testArch }

func (featureArch) Describe(ctx context.Context) (*Description, error) {
	d := testDescription()
	d.Version = fmt.Sprint(EngineFeature(ctx))
	return d, nil
}

// TestEachSideIsToldTheFeaturesOfTheOther: the number of an engine that is older than it is 0.
func TestEachSideIsToldTheFeaturesOfTheOther(t *testing.T) {
	checkLeaks(t)
	c := dial(t, &featureArch{})
	for _, engine := range []uint32{0, Feature, Feature + 5} {
		p, err := c.rpc.Describe(context.Background(), &pb.DescribeRequest{Feature: engine})
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(engine); p.GetVersion() != want || p.GetFeature() != Feature {
			t.Errorf("the plugin sees an engine of feature %s, expected %s, and says that it knows %d, expected %d", p.GetVersion(), want, p.GetFeature(), Feature)
		}
	}
	if d, err := c.Describe(context.Background()); err != nil || d.Version != fmt.Sprint(Feature) {
		t.Errorf("the client does not say which features it knows: %v, %v", d, err)
	}
	if d, err := (featureArch{}).Describe(context.Background()); err != nil || d.Version != fmt.Sprint(Feature) {
		t.Errorf("in the engine's own process: %v, %v", d, err)
	}
}

// newerServer is a plugin whose protocol has members that this one does not know.
type newerServer struct {
	pb.UnimplementedArchitectureServer
}

func (newerServer) Describe(context.Context, *pb.DescribeRequest) (*pb.Description, error) {
	p := encodeDescription(testDescription())
	p.Feature = Feature + 1
	p.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 500, protowire.VarintType), 7))
	p.Registers[1].ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 77, protowire.BytesType), "x"))
	return p, nil
}

func (newerServer) OpenObject(_ *pb.OpenObjectRequest, stream grpc.ServerStreamingServer[pb.OpenObjectPart]) error {
	a := &pb.OpenObjectAnswer{}
	for number := range protowire.Number(2 * maxIgnored) {
		a.ProtoReflect().SetUnknown(append(a.ProtoReflect().GetUnknown(), protowire.AppendVarint(protowire.AppendTag(nil, 1000+number, protowire.VarintType), 1)...))
	}
	return stream.Send(&pb.OpenObjectPart{Part: &pb.OpenObjectPart_Answer{Answer: a}})
}

// TestMembersOfANewerPluginAreIgnoredAndNamed: the answers are used without them, and they are
// counted up to a bound.
func TestMembersOfANewerPluginAreIgnoredAndNamed(t *testing.T) {
	ctx := context.Background()
	c := dialServer(t, newerServer{})
	if list := c.Ignored(); list != nil {
		t.Errorf("before any call %q", list)
	}
	d, err := c.Describe(ctx)
	if err != nil || d.Feature != Feature+1 || d.Validate() != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	want := []string{"Description member 500", "RegisterRange member 77"}
	if list := c.Ignored(); !slices.Equal(list, want) {
		t.Errorf("ignored: %q, expected %q", list, want)
	}
	if _, err := c.OpenObject(ctx, nil, &OpenObjectRequest{}); err != nil {
		t.Fatal(err)
	}
	if list := c.Ignored(); len(list) != maxIgnored || !slices.Contains(list, "OpenObjectAnswer member 1000") {
		t.Errorf("%d ignored members, expected %d: %q", len(list), maxIgnored, list)
	}
}
