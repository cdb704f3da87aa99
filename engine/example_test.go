// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// The stack of a core's crashed thread, without child processes.
func Example() {
	e, err := engine.New(engine.Options{InProcess: []sdk.Architecture{x86_64.New()}})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	t, err := e.Open("../examples/crash/server.core")
	if err != nil {
		log.Fatal(err)
	}
	for stack := range t.Stacks(context.Background()) {
		if !stack.Thread.Crashed {
			continue
		}
		for _, f := range stack.Frames {
			for i, s := range f.Symbols {
				inlined := i < len(f.Symbols)-1
				fmt.Printf("%#x %s line %d inlined=%v, found by %s\n", f.PC, s.Function, s.Line, inlined, f.FoundBy)
			}
		}
		fmt.Println("stopped:", stack.Stopped.Reason)
	}
	// Output:
	// 0x401100 content_length line 40 inlined=true, found by context
	// 0x401100 read_body.cold line 47 inlined=false, found by context
	// 0x401941 serve line 59 inlined=false, found by cfi
	// 0x401958 serve line 58 inlined=false, found by cfi
	// 0x401958 serve line 58 inlined=false, found by cfi
	// 0x40199a by_name line 66 inlined=false, found by cfi
	// 0x4091cd msort_with_tmp.part.0 line 0 inlined=false, found by cfi
	// 0x409366 qsort_r line 0 inlined=false, found by cfi
	// 0x40170a main line 101 inlined=false, found by cfi
	// 0x401cc4 __libc_start_call_main line 0 inlined=false, found by cfi
	// 0x4033c0 __libc_start_main line 0 inlined=false, found by cfi
	// 0x401741 _start line 0 inlined=false, found by cfi
	// stopped: outermost
}

// newEngine makes an engine for x86-64, without child processes.
func newEngine() *engine.Engine {
	e, err := engine.New(engine.Options{InProcess: []sdk.Architecture{x86_64.New()}})
	if err != nil {
		log.Fatal(err)
	}
	return e
}

// The stacks of a living process, whose threads stand still while their stacks are copied.
func ExampleEngine_OpenProcess() {
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		log.Fatal(err)
	}
	defer sleeper.Process.Kill()
	e := newEngine()
	defer e.Close()
	t, err := e.OpenProcess(sleeper.Process.Pid)
	if err != nil {
		log.Fatal(err)
	}
	for stack := range t.Stacks(context.Background()) {
		fmt.Println(stack.Thread.ID == strconv.Itoa(sleeper.Process.Pid), stack.Frames[0].FoundBy)
	}
	// Output: true context
}

// The stacks of samples that a profiler took of this process: each is registers, and the bytes
// at the top of a stack.
func ExampleEngine_OpenSamples() {
	e := newEngine()
	defer e.Close()
	process := e.OpenSamples("x86_64")
	maps, err := os.Open("/proc/self/maps") // once more when the process loads a library
	if err != nil {
		log.Fatal(err)
	}
	defer maps.Close()
	if _, err := process.LoadMaps(maps, "x86_64"); err != nil {
		log.Fatal(err)
	}
	walker := process.Walker() // one for each goroutine
	for _, sample := range []*trace.Sample{takeSample()} {
		stack := walker.Walk(context.Background(), sample)
		fmt.Println(stack.Frames[0].FoundBy, stack.Frames[0].Module != nil)
	}
	// Output: context true
}

// takeSample makes a sample as a profiler would.
func takeSample() *trace.Sample {
	s := &trace.Sample{Arch: "x86_64", StackStart: 0x7ff0_0000, Stack: make([]byte, 64)}
	pc, _, _, _ := runtime.Caller(0)
	s.Registers.Set(7, binary.LittleEndian.AppendUint64(nil, s.StackStart)) // rsp, by DWARF number
	s.Registers.Set(16, binary.LittleEndian.AppendUint64(nil, uint64(pc)))  // rip
	return s
}

// The functions at addresses of a core, innermost first.
func ExampleTarget_Symbolize() {
	e := newEngine()
	defer e.Close()
	t, err := e.Open("../examples/crash/server.core")
	if err != nil {
		log.Fatal(err)
	}
	addresses := []uint64{0x401100, 0x401940}
	for i, functions := range t.Symbolize(context.Background(), addresses) {
		for _, f := range functions {
			fmt.Printf("%#x %s line %d\n", addresses[i], f.Function, f.Line)
		}
	}
	// Output:
	// 0x401100 content_length line 40
	// 0x401100 read_body.cold line 47
	// 0x401940 serve line 59
}
