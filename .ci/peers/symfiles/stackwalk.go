// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	codeFile  = regexp.MustCompile(`\(code_file\)\s+= "(/[^"]+)"`)
	threadOf  = regexp.MustCompile(`^Thread (\d+)`)
	frameName = regexp.MustCompile(`^ ?\d+  (.*)`)
	framePC   = regexp.MustCompile(`rip = (0x[0-9a-f]+)`)
	foundBy   = regexp.MustCompile(`^\s+Found by: (.*)`)
)

// walked is a frame of minidump_stackwalk.
type walked struct{ name, pc, found string }

// walk compares the stacks of a minidump by the symbol files of the two. A module of which
// dump_syms writes nothing has none in either.
func (p *peer) walk(dump string) error {
	out, err := exec.Command(filepath.Join(p.tools, "minidump_dump"), dump).Output()
	if err != nil && len(out) == 0 {
		return err
	}
	stores := [2]string{filepath.Join(p.dir, "ours"), filepath.Join(p.dir, "theirs")}
	for _, m := range codeFile.FindAllSubmatch(out, -1) {
		if path := string(m[1]); isFile(path) {
			if err := p.store(path, stores); err != nil {
				return err
			}
		}
	}
	ours, theirs := p.stackwalk(dump, stores[0]), p.stackwalk(dump, stores[1])
	for thread, a := range ours {
		b := theirs[thread]
		i := 0
		for i < min(len(a), len(b)) && a[i].pc == b[i].pc {
			i++
		}
		var kind class
		switch {
		case i == len(a) && i == len(b):
		case i == len(a) && i == len(b)-1 && i > 0 && strings.Contains(a[i-1].name, "_start "):
			kind = known("dump_syms' file shows a frame behind _start: an address of the stack")
		case i < len(b) && b[i].found == "stack scanning":
			kind = known("dump_syms' file has no CFA there, and the stack is scanned")
		default:
			kind = unknown("another PC")
		}
		p.stacks.add(kind, func() string { return fmt.Sprintf("%s thread %s: %v / %v", dump, thread, a[i:], b[i:]) })
	}
	return nil
}

// store puts the symbol files of a module into the two stores, once.
func (p *peer) store(path string, stores [2]string) error {
	done := filepath.Join(p.dir, "done", strings.ReplaceAll(path, "/", "_"))
	if isFile(done) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(done), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		return err
	}
	whole, err := p.joined(path)
	if err != nil {
		return err
	}
	text, err := exec.Command(filepath.Join(p.tools, "dump_syms"), "-d", "-m", whole, filepath.Dir(path)).Output()
	if err != nil || len(text) == 0 {
		return nil // it writes nothing of files without debug information
	}
	line, _, _ := strings.Cut(string(text), "\n")
	module := strings.SplitN(line, " ", 5)
	to := filepath.Join(stores[1], module[4], module[3], module[4]+".sym")
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		return err
	}
	return exec.Command(p.unwindd, "symbols", "--store", stores[0], whole).Run()
}

// stackwalk returns the frames of each thread, except inlined ones.
func (p *peer) stackwalk(dump, store string) map[string][]walked {
	out, _ := exec.Command(filepath.Join(p.tools, "minidump_stackwalk"), dump, store).Output()
	threads := map[string][]walked{}
	thread, last := "", walked{}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Loaded modules") {
			break
		}
		if m := threadOf.FindStringSubmatch(line); m != nil {
			thread = m[1]
			threads[thread] = nil
		} else if m := frameName.FindStringSubmatch(line); m != nil {
			last = walked{name: m[1]}
		}
		if m := framePC.FindStringSubmatch(line); m != nil {
			last.pc = m[1]
		}
		if m := foundBy.FindStringSubmatch(line); m != nil && last.pc != "" && m[1] != "inlining" {
			last.found = m[1]
			threads[thread] = append(threads[thread], last)
		}
	}
	return threads
}
