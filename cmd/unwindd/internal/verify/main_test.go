// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/sdk"
)

const prefix = "unwindd-arch-"

// The test binary is unwindd, which confines plugins, where its first argument says so,
// and a plugin that misbehaves as its name says where it is called unwindd-arch-NAME or
// unwindd-runtime-NAME.
func TestMain(m *testing.M) {
	if name, ok := strings.CutPrefix(filepath.Base(os.Args[0]), prefix); ok {
		misbehave(name)
		return
	}
	if name, ok := strings.CutPrefix(filepath.Base(os.Args[0]), sdk.RuntimePrefix); ok {
		sdk.ServeRuntime(oddRuntime{fault: name})
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		err := fmt.Errorf("no such command: %q", os.Args[2])
		switch os.Args[2] {
		case "exec":
			err = confine.ExecMain(os.Args[3:])
		case "serve":
			err = confine.ServeMain(os.Args[3:], bundled.Architectures, nil)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cache, err := os.MkdirTemp("", "cache-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", cache) // the user's own stays out of it
	status := m.Run()
	os.RemoveAll(cache)
	os.Exit(status)
}

// odd is a plugin that has one fault, that of its name; "good" has none.
type odd struct {
	sdk.Base
	fault string
}

var (
	calls     atomic.Int64
	underWay  atomic.Int64
	keptBytes [][]byte
)

// misbehave is a plugin's process.
func misbehave(fault string) {
	if shakeHands := handshakes[fault]; shakeHands != nil {
		shakeHands()
	}
	switch fault {
	case "exits":
		fmt.Fprintln(os.Stderr, "libmychip.so.3 is missing")
		os.Exit(3)
	case "panics-at-start":
		panic("no firmware")
	case "hangs-at-start":
		time.Sleep(time.Hour)
	case "prints-a-banner":
		fmt.Println("MyChip plugin, version 7")
	case "closes-its-output":
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case "other-version":
		fmt.Printf("1|%d|unix|%s|grpc|\n", sdk.ProtocolVersion+41, filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s"))
		time.Sleep(time.Hour)
	case "listens-elsewhere":
		fmt.Printf("1|%d|tcp|127.0.0.1:4711|grpc|\n", sdk.ProtocolVersion)
		time.Sleep(time.Hour)
	}
	sdk.Serve(odd{fault: fault})
	if fault == "outlives-its-engine" {
		time.Sleep(time.Hour)
	}
}

func description() *sdk.Description {
	return &sdk.Description{
		Name: "odd", Version: "1", Recognises: []sdk.Recogniser{{ELFMachine: 0xfe01, OSABI: -1}, {OSABI: -1, NoteOwner: "ODD"}}, AddressBits: 32,
		Registers:    []sdk.RegisterRange{{Count: 4, Names: []string{"a", "fp", "sp", "pc"}, Bits: 32}},
		RegisterSets: []sdk.RegisterSet{{Owner: "CORE", Type: 1, Fields: []sdk.RegisterField{{Offset: 8, Size: 4, Register: 2}, {Offset: 12, Size: 4, Register: 3}}}},
		PC:           3, SP: 2, FP: 1, ReturnAddress: 3,
		DefaultRules: []cfi.RegisterRule{{Column: 2, Rule: cfi.Rule{Kind: cfi.ValOffset}}},
		Entry: &cfi.Row{
			CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 2, Offset: 4}, ReturnAddress: 3,
			Rules: []cfi.RegisterRule{{Column: 3, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -4}}},
		},
		CallDistance: 1, MaxInstruction: 4, StackAlign: 4,
	}
}

// Describe implements sdk.Architecture.
func (o odd) Describe(context.Context) (*sdk.Description, error) {
	d := description()
	switch o.fault {
	case "hangs-in-describe":
		spin()
	case "panics-in-describe":
		_ = d.Registers[d.PC]
	case "refuses-to-be-described":
		return nil, errors.New("no licence")
	case "unknown-pc":
		d.PC = 64
	case "changes":
		d.Version = fmt.Sprint(calls.Add(1))
	case "another-in-each-process":
		d.Version = fmt.Sprint(os.Getpid())
	case "overlapping-sets":
		d.RegisterSets[0].Fields[1].Offset = 10
	case "wide-mask":
		d.Registers = append(d.Registers, sdk.RegisterRange{First: 8, Count: 1, Names: []string{"exec"}, Bits: 64, Class: sdk.Mask, Lanes: 32})
	case "wants-no-engine":
		d.NoEngine = true
	}
	if f := faults[o.fault].describe; f != nil {
		f(d)
	}
	return d, nil
}

func spin() {
	for {
		calls.Add(1)
	}
}

// OpenTarget implements sdk.Architecture.
func (o odd) OpenTarget(_ context.Context, _ sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	if o.fault == "believes-notes" {
		for _, n := range req.Notes {
			_ = n.Data[n.Type]
		}
	}
	a := &sdk.OpenTargetAnswer{}
	if f := faults[o.fault].openTarget; f != nil {
		f(req, a)
	}
	return a, nil
}

// OpenObject implements sdk.Architecture.
func (o odd) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	switch o.fault {
	case "ignores-cancellation":
		if _, err := e.ReadSection(ctx, req.Object, ".text"); err != nil {
			select { // the word that the call is cancelled may come after the answer
			case <-ctx.Done():
				spin()
			case <-time.After(100 * time.Millisecond):
			}
		}
	case "keeps-everything":
		kept := make([]byte, 40<<20)
		for i := range kept {
			kept[i] = 1
		}
		keptBytes = append(keptBytes, kept)
	case "eats-memory":
		for {
			kept := make([]byte, 16<<20)
			for i := range kept {
				kept[i] = 1
			}
			keptBytes = append(keptBytes, kept)
		}
	case "wants-no-engine":
		_, _ = e.ReadSection(ctx, req.Object, ".text")
		panic("there is no engine")
	case "breaks-on-damage":
		b, err := e.ReadSection(ctx, req.Object, ".text")
		if err == nil && len(b)%2 == 1 {
			panic("odd length")
		}
	case "refuses-objects":
		return nil, errors.New("this compiler is not supported")
	case "object-in-itself":
		if b, err := e.ReadSection(ctx, req.Object, ""); err == nil {
			return &sdk.OpenObjectAnswer{Nested: []sdk.NestedObject{{Name: "x", Size: uint64(len(b))}}}, nil
		}
	}
	a := &sdk.OpenObjectAnswer{}
	if f := faults[o.fault].openObject; f != nil {
		f(req, a)
	}
	return a, nil
}

// FrameRules implements sdk.Architecture.
func (o odd) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	if underWay.Add(1) > 1 && o.fault == "dies-of-two-calls" {
		_, _ = syscall.Write(2, []byte("terminate called without an active exception\n")) // as C++ does
		os.Exit(134)
	}
	if o.fault == "dies-of-two-calls" {
		time.Sleep(20 * time.Millisecond)
	}
	defer underWay.Add(-1)
	switch {
	case o.fault == "hangs":
		<-ctx.Done()
		select {}
	case o.fault == "forgets-objects" && req.Object == 77:
		return nil, errors.New("unknown handle")
	case o.fault == "crashes" && len(req.Functions) > 100:
		time.AfterFunc(0, func() { decode(req.Functions[0].Code[:1]) }) // where nobody recovers it
		<-ctx.Done()
	case o.fault == "too-few" && len(req.Functions) > 1:
		req.Functions = req.Functions[1:]
	}
	a, err := o.Base.FrameRules(ctx, e, req)
	if row := o.rows(); row != nil {
		for i, f := range req.Functions {
			if len(f.Code) >= 16 {
				a.Functions[i].Rows = row(f.Start)
			}
		}
	}
	if f := faults[o.fault].frameRules; f != nil {
		f(req, a)
	}
	if o.fault == "forgets-its-rows" && len(a.Functions) > 0 {
		a.Functions[0].Reason = fmt.Sprint("process ", os.Getpid())
	}
	return a, err
}

func decode(code []byte) byte { return code[7] }

// rows are those of a fault, for a function that begins somewhere; nil: it is in others.
func (o odd) rows() func(start uint64) []cfi.Row {
	change := map[string]func(rows []cfi.Row){
		"unknown-register": func(r []cfi.Row) { r[0].CFA.Register = 99 },
		"unordered":        func(r []cfi.Row) { r[0], r[1] = r[1], r[0] },
		"overlapping":      func(r []cfi.Row) { r[0].End++ },
		"undecodable": func(r []cfi.Row) {
			r[0].Rules[0].Rule = cfi.Rule{Kind: cfi.Expression, Expr: []byte{0x03}}
		},
		"in-circles": func(r []cfi.Row) {
			r[0].CFA.Offset, r[0].Rules[0].Rule = 0, cfi.Rule{Kind: cfi.SameValue}
		},
	}[o.fault]
	if change == nil {
		return nil
	}
	return func(start uint64) []cfi.Row {
		var rows []cfi.Row
		for i := range uint64(2) {
			rows = append(rows, cfi.Row{
				Start: start + 8*i, End: start + 8*i + 8, CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 2, Offset: 4}, ReturnAddress: 3,
				Rules: []cfi.RegisterRule{{Column: 3, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -4}}},
			})
		}
		change(rows)
		return rows
	}
}

// BindThreads implements sdk.Architecture.
func (o odd) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	if o.fault == "starts-a-process" {
		cmd := exec.Command("/bin/sleep", "30")
		if err := cmd.Start(); err != nil {
			return nil, err
		}
	}
	if f := faults[o.fault].bindThreads; f != nil {
		a := sdk.DefaultBindThreads(description(), req)
		f(a)
		return a, nil
	}
	return o.Base.BindThreads(ctx, e, req)
}
