// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// The stack of a core's crashed thread, without child processes.
func Example() {
	e, err := engine.New(engine.Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}},
	})
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
