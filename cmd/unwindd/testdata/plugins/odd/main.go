// Odd is a plugin for x86-64 state under another ELF machine number. It
// misbehaves in the way that its name says: unwindd-arch-hang hangs.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// Machine is an ELF machine that nobody uses.
const Machine = 0x7b7b

var mode = strings.TrimPrefix(filepath.Base(os.Args[0]), "unwindd-arch-")

// poison is what a terminal would obey, and what would make a line of its own.
const poison = "\x1b[31m\rFORGED\nFORGED\u202e\u2028\u009b\x9b\x7f"

type odd struct{ sdk.Architecture }

func (o odd) Describe(context.Context) (*sdk.Description, error) {
	d := x86_64.Description()
	d.Name = mode
	if mode == "loud" {
		d.Version = "1" + poison
	}
	for i := range d.Recognises {
		d.Recognises[i].ELFMachine = Machine
	}
	return d, nil
}

func (o odd) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	switch mode {
	case "good":
		log.Printf("asked for %d threads", len(req.Threads))
	case "hang":
		for {
			runtime.Gosched()
		}
	case "panic":
		_ = req.Threads[len(req.Threads)]
	case "crash":
		go crash()
		select {}
	case "die":
		os.Exit(3)
	case "loud":
		fmt.Fprintln(os.Stderr, "said"+poison)
		return nil, errors.New("an error" + poison)
	case "error":
		return nil, errors.New("the moon is in the wrong phase")
	case "lie":
		return &sdk.BindThreadsAnswer{Threads: make([]sdk.ThreadBinding, len(req.Threads)+7)}, nil
	}
	return o.Architecture.BindThreads(ctx, e, req)
}

func crash() { panic("the moon fell down") }

func (o odd) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	if mode == "nonsense" {
		return &sdk.OpenObjectAnswer{Functions: []sdk.Function{{Name: "f", Start: 9, End: 3}}}, nil
	}
	req.Machine = 62
	return o.Architecture.OpenObject(ctx, e, req)
}

func main() {
	switch mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "no licence found")
		os.Exit(4)
	case "curse":
		fmt.Fprintln(os.Stderr, "no"+poison)
		os.Exit(4)
	case "garbage":
		fmt.Println("hello, I am a plugin")
		time.Sleep(time.Hour)
	case "mute":
		time.Sleep(time.Hour)
	}
	sdk.Serve(odd{x86_64.New()})
}
