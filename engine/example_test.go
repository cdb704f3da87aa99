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
}
