// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command sampler is a sampling profiler for x86-64 Linux: 100 times a second it copies
// registers and the top of the stack of a process, and walks them by an engine.Walker.
//
//	go run ./examples/sampler PID SECONDS
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func main() {
	var pid, seconds int
	_, err := fmt.Sscan(strings.Join(os.Args[1:], " "), &pid, &seconds) // PID SECONDS
	fail(err)
	runtime.LockOSThread() // one thread traces
	fail(unix.PtraceSeize(pid))
	e, err := engine.New(engine.Options{NoSymbols: true, InProcess: []sdk.Architecture{x86_64.New()}})
	fail(err)
	defer e.Close()
	process := e.OpenSamples("x86_64")
	walker := process.Walker()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	fail(err)
	in := map[string]int{} // the number of samples with a function
	for n := range 100 * seconds {
		s := stop(pid, memory)
		if n%100 == 0 { // new libraries are found once a second
			maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
			fail(err)
			_, err = process.LoadMaps(maps, "x86_64")
			fail(errors.Join(err, maps.Close()))
		}
		for name := range names(process, walker.Walk(context.Background(), s)) {
			in[name]++
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, name := range slices.SortedFunc(maps.Keys(in), func(a, b string) int { return in[b] - in[a] }) {
		fmt.Printf("%5.1f%% %s\n", float64(in[name])/float64(seconds), name)
	}
}

// names returns the functions of a stack, each once.
func names(process *engine.Target, stack *trace.Stack) map[string]bool {
	met, addresses := map[string]bool{}, []uint64{}
	for _, f := range stack.Frames {
		if !f.Exact {
			f.PC-- // a return address: the call is before it
		}
		addresses = append(addresses, f.PC)
	}
	for _, frames := range process.Symbolize(context.Background(), addresses) {
		for i := range frames {
			met[frames[i].Function] = true
		}
	}
	return met
}

// stop stops the process while it copies its state.
func stop(pid int, memory *os.File) *trace.Sample {
	fail(unix.PtraceInterrupt(pid))
	_, err := unix.Wait4(pid, nil, unix.WALL, nil)
	fail(err)
	var r unix.PtraceRegs
	fail(unix.PtraceGetRegs(pid, &r))
	s := &trace.Sample{Arch: "x86_64", StackStart: r.Rsp, Stack: make([]byte, 64<<10)}
	n, _ := memory.ReadAt(s.Stack, int64(r.Rsp))
	fail(unix.PtraceCont(pid, 0))
	s.Stack = s.Stack[:n]
	// By DWARF number (System V ABI, AMD64, figure 3.36).
	for number, v := range []uint64{r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, r.Rsp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15, r.Rip} {
		s.Registers.Set(uint32(number), binary.LittleEndian.AppendUint64(nil, v))
	}
	return s
}

func fail(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
