// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/plugins/ruby"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// rule has the lines of a function of testdata/busy.rb, and its callers.
type rule struct {
	from, to int
	callers  string // labels, each behind a space
}

// rules has all functions that have a place in the program. A method in C has the place of its caller.
var rules = map[string]rule{
	"<main>": {32, 32, ""},
	"top":    {25, 30, " <main>"},
	"spin":   {4, 15, " top deeper"}, "deeper": {17, 19, " block_in_each_of deeper"},
	"each_of": {21, 23, " top"}, "block in each_of": {22, 22, " each"}, "each": {22, 22, " each_of"},
	"gsub": {29, 29, " top"}, "block in top": {29, 29, " gsub"}, "upcase": {29, 29, " block_in_top"},
}

// sample looks at a living process of a version some times, and returns how many frames it may not have, of how many.
func sample(ctx context.Context, v *rubyVersion, folder string, count int) (wrong, frames, stacks int, err error) {
	program, err := filepath.Abs(filepath.Join(*programs, "busy.rb"))
	if err != nil {
		return 0, 0, 0, err
	}
	argv, err := v.command(folder, program)
	if err != nil {
		return 0, 0, 0, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		return 0, 0, 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	time.Sleep(time.Second)
	for range count {
		r := &recorder{Runtime: ruby.New(), got: map[string]*stack{}}
		if err := look(ctx, r, cmd.Process.Pid); err != nil {
			return wrong, frames, stacks, err
		}
		for _, s := range r.got {
			if len(s.frames) > 0 {
				stacks++
			}
			for i, f := range s.frames {
				frames++
				if why := check(s.frames, i); why != "" {
					if wrong++; wrong <= *details {
						fmt.Printf("%s: %v: %s; all: %v\n", v.name(), f, why, s.frames)
					}
				}
			}
		}
	}
	return wrong, frames, stacks, nil
}

// look walks the stacks of a living process.
func look(ctx context.Context, r *recorder, pid int) error {
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}, InProcessRuntimes: []sdk.Runtime{r}}})
	if err != nil {
		return err
	}
	defer e.Close()
	target, err := e.OpenProcess(pid)
	if err != nil {
		return err
	}
	defer target.Close()
	for range target.Stacks(ctx) {
	}
	return nil
}

// check says why a frame cannot be; "": it can.
func check(list []frame, i int) string {
	plain := func(f frame) string {
		label, _, _ := strings.Cut(f.label, "Object#")
		if rest, ok := strings.CutPrefix(f.label[len(label):], "Object#"); ok {
			label += rest
		}
		return strings.TrimPrefix(strings.TrimPrefix(label, "Array#"), "String#")
	}
	f := list[i]
	r, ok := rules[plain(f)]
	switch {
	case !ok && f.line >= 8 && f.line <= 31 && i == 0: // an operator
		return ""
	case !ok:
		return "there is no such function"
	case f.line < r.from || f.line > r.to:
		return fmt.Sprintf("it is in lines %d to %d", r.from, r.to)
	case i+1 == len(list) && r.callers != "":
		return "it has a caller"
	case i+1 < len(list) && !strings.Contains(r.callers+" ", " "+strings.ReplaceAll(plain(list[i+1]), " ", "_")+" "):
		return "its caller is not " + plain(list[i+1])
	}
	return ""
}
