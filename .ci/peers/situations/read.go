// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
)

// outermost are functions that no other one calls: a stack that ends in one is complete. Both
// readers are judged by them.
var outermost = map[string]bool{
	"_start": true, "_dl_start_user": true, "_dl_start": true, "clone": true, "clone3": true, "__clone": true, "__clone3": true, "ret_from_fork_asm": true, "ret_from_fork": true,
	"__restore_rt": true, "runtime.goexit": true, "runtime.goexit.abi0": true, "runtime.rt0_go": true, "runtime.rt0_go.abi0": true,
	"runtime.mstart": true, "runtime.mstart.abi0": true, "runtime.mcall": true, "_rt0_amd64_linux": true, "secondary_startup_64_no_verify": true,
	"secondary_startup_64": true, "thread_start": true, "_start_c": true, "__libc_start_main": true,
}

// isWithout reports whether a name stands for an address without one.
func isWithout(name string) bool {
	return name == "" || name == "[unknown]" || strings.Contains(name, "+0x") && strings.HasPrefix(name, "[")
}

// count has the numbers of a reader for a recording.
type count struct{ stacks, complete, frames, named int }

// add adds a stack, innermost first, without inlined calls.
func (c *count) add(names []string) {
	if len(names) == 0 {
		return
	}
	c.stacks++
	for _, name := range names {
		c.frames++
		if !isWithout(name) {
			c.named++
		}
	}
	last := names[len(names)-1]
	if i := strings.Index(last, "@"); i > 0 {
		last = last[:i]
	}
	if outermost[last] {
		c.complete++
	}
}

func byUnwindd(dir, unwindd string) (c count, err error) {
	cmd := exec.Command(unwindd, "profile", "--format", "json")
	cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "HOME="+dir)
	var warnings bytes.Buffer
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil {
		return c, err
	}
	var p struct {
		Samples []struct{ Frames []int }
		Frames  []struct {
			Function string
			Inlined  bool
		}
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return c, err
	}
	for _, s := range p.Samples {
		var names []string
		for _, i := range s.Frames {
			if !p.Frames[i].Inlined {
				names = append(names, p.Frames[i].Function)
			}
		}
		c.add(names)
	}
	return c, nil
}

func byPerf(dir string) (c count, err error) {
	cmd := exec.Command("perf", "script", "--no-inline", "-i", "perf.data", "-F", "comm,ip,sym")
	cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "HOME="+dir)
	out, err := cmd.Output()
	if err != nil {
		return c, err
	}
	for block := range strings.SplitSeq(string(out), "\n\n") {
		var names []string
		for line := range strings.Lines(block) {
			if line[0] != '\t' && line[0] != ' ' {
				continue // the name of the thread
			}
			_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			names = append(names, name)
		}
		c.add(names)
	}
	return c, nil
}
