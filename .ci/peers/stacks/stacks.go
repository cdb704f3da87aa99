// SPDX-License-Identifier: Apache-2.0

// Package stacks reads the stacks that unwindd, gdb and eu-stack print, for the programs
// that compare them PC by PC.
package stacks

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Stack has the frames of a thread, innermost first, without inlined calls.
type Stack struct {
	PCs       []uint64
	Found     []string // how unwindd found each frame
	Text      []string // function and module of each frame, by unwindd
	Stopped   string   // why it ends
	IsCrashed bool
}

// WithoutTailCalls returns the stack without the functions that were left by tail calls,
// which other tools do not have.
func (s *Stack) WithoutTailCalls() *Stack {
	out := &Stack{Stopped: s.Stopped, IsCrashed: s.IsCrashed}
	for i, found := range s.Found {
		if found != "call-site" {
			out.PCs, out.Found, out.Text = append(out.PCs, s.PCs[i]), append(out.Found, found), append(out.Text, s.Text[i])
		}
	}
	return out
}

// IsGuess reports whether a frame was found without call frame information.
func IsGuess(found string) bool {
	return found == "scan" || found == "frame-pointer" || found == "function-body"
}

// Common returns how many frames two stacks have in common, from the innermost one.
func Common(a, b []uint64) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Unwindd reads the JSON of unwindd's stack command: the stacks by thread, and the path of
// the first module, which is the executable.
func Unwindd(out []byte) (list map[string]*Stack, exe string, err error) {
	var document struct {
		Modules []struct{ Path string }
		Threads []struct {
			ID      string
			Crashed bool
			Frames  []struct {
				PC       string
				FoundBy  string `json:"found_by"`
				Inlined  bool
				Module   *int
				Function string
			}
			Stopped struct{ Reason, Detail string }
		}
	}
	if err := json.Unmarshal(out, &document); err != nil {
		return nil, "", err
	}
	list = map[string]*Stack{}
	for _, t := range document.Threads {
		s := &Stack{Stopped: t.Stopped.Reason + ": " + t.Stopped.Detail, IsCrashed: t.Crashed}
		for _, f := range t.Frames {
			if f.Inlined {
				continue
			}
			pc, err := strconv.ParseUint(f.PC, 0, 64)
			if err != nil {
				return nil, "", err
			}
			text := f.Function
			if f.Module != nil {
				text += " in " + document.Modules[*f.Module].Path
			}
			s.PCs, s.Found, s.Text = append(s.PCs, pc), append(s.Found, f.FoundBy), append(s.Text, text)
		}
		list[t.ID] = s
	}
	if len(document.Modules) > 0 {
		exe = document.Modules[0].Path
	}
	return list, exe, nil
}

// GDBScript prints a line for every thread that GDB reads. It is in a folder beside the one
// of this module, in which the programs run.
const GDBScript = "../../internal/subject/testdata/gdb_pcs.py"

// GDB asks gdb for the stacks of a target, by thread. args name the target.
func GDB(args ...string) (map[string]*Stack, error) {
	args = append([]string{"-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"}, args...)
	out, err := exec.Command("gdb", append(args, "-ex", "source "+GDBScript)...).Output()
	list := map[string]*Stack{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "PCS" {
			continue
		}
		s := &Stack{}
		for _, word := range f[2:] {
			pc, err := strconv.ParseUint(word, 0, 64)
			if err != nil {
				return nil, err
			}
			s.PCs = append(s.PCs, pc)
		}
		list[f[1]] = s
	}
	if err != nil {
		err = fmt.Errorf("gdb: %w", err)
	}
	return list, err
}

// EUStack asks eu-stack for the stacks of a target, by thread. Its exit status is 1 where a
// stack ends in an error.
func EUStack(args ...string) map[string]*Stack {
	out, _ := exec.Command("eu-stack", append([]string{"-n", "0"}, args...)...).Output()
	list := map[string]*Stack{}
	var s *Stack
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "TID":
			s = &Stack{}
			list[strings.TrimSuffix(f[1], ":")] = s
		case len(f) > 1 && f[0][0] == '#' && s != nil:
			pc, _ := strconv.ParseUint(f[1], 0, 64)
			s.PCs = append(s.PCs, pc)
		}
	}
	return list
}
