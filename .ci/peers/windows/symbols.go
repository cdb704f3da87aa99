// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/breakpad"
)

// compareSymbols holds the stacks of public dumps of Windows against minidump_stackwalk's, by the same
// symbol files: public ones, and those that unwindd writes of public PDB files.
func (r *rig) compareSymbols() error {
	dumps := r.publicFiles(".dmp")
	if len(dumps) == 0 {
		fmt.Println("no public dumps are named")
		return nil
	}
	tools, err := breakpad.Readers()
	if err != nil {
		return err
	}
	store := filepath.Join(r.dir, "store")
	if err := r.fillStore(store); err != nil {
		return err
	}
	c := newCount(r.details)
	for _, dump := range dumps {
		theirs, isWindows := stackwalk(filepath.Join(tools, "minidump_stackwalk"), dump, store)
		if !isWindows {
			continue
		}
		ours, err := r.stacks(dump, store)
		if err != nil {
			c.differ("? no stacks", "%s: %v", dump, err)
			continue
		}
		for i, b := range theirs {
			if len(b) == 0 {
				continue
			}
			// minidump_stackwalk leaves the thread out that wrote the dump.
			for len(ours) > 1 && (len(ours[0]) == 0 || ours[0][0].pc != b[0].pc) {
				ours = ours[1:]
			}
			if len(ours) == 0 {
				c.differ("? a thread less", "%s thread %d", filepath.Base(dump), i)
				continue
			}
			c.stack(fmt.Sprintf("%s thread %d", filepath.Base(dump), i), ours[0], b)
			ours = ours[1:]
		}
	}
	if n := c.print("stacks"); n > 0 {
		r.fail("%d stacks", n)
	}
	return nil
}

// walked is a frame: its PC, and whether it is a guess.
type walked struct {
	pc      uint64
	isGuess bool
}

// stack compares the two stacks of a thread.
func (c *count) stack(name string, ours, theirs []walked) {
	i := 0
	for i < min(len(ours), len(theirs)) && ours[i].pc == theirs[i].pc {
		i++
	}
	kind := "? another frame"
	switch {
	case i == len(ours) && i == len(theirs):
		c.equal++
		return
	case i < len(theirs) && theirs[i].isGuess:
		kind = "minidump_stackwalk guesses another"
	case i < len(ours) && ours[i].isGuess:
		kind = "unwindd guesses further, or another"
	case i == len(theirs):
		kind = "unwindd goes on by what it knows"
	case i == len(ours):
		kind = "? shorter"
	}
	c.differ(kind, "%s: equal up to frame %d: %x, minidump_stackwalk %x", name, i, pcs(ours[i:]), pcs(theirs[i:]))
}

func pcs(list []walked) (all []uint64) {
	for _, f := range list[:min(len(list), 4)] {
		all = append(all, f.pc)
	}
	return all
}

// fillStore puts public symbol files, and the ones that unwindd writes of public PDB files, where a store
// has them.
func (r *rig) fillStore(store string) error {
	for _, path := range r.publicFiles(".sym") {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		words := strings.Fields(string(line))
		if len(words) < 5 || words[0] != "MODULE" {
			continue
		}
		name := strings.Join(words[4:], " ")
		to := filepath.Join(store, name, words[3], strings.TrimSuffix(name, ".pdb")+".sym")
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
	}
	for _, path := range r.publicFiles(".pdb") {
		if image := strings.TrimSuffix(path, filepath.Ext(path)) + ".exe"; isFile(image) {
			path = image
		}
		_ = exec.Command(r.unwindd, "symbols", "--store", store, path).Run() // portable and older ones have none
	}
	return nil
}

var (
	threadLine = regexp.MustCompile(`^Thread (\d+)`)
	frameLine  = regexp.MustCompile(`^ ?\d+  `)
	pcOf       = regexp.MustCompile(`\b[re]ip = 0x([0-9a-f]+)|\bpc = 0x([0-9a-f]+)`)
	foundLine  = regexp.MustCompile(`^\s+Found by: (.*)`)
)

// stackwalk returns the frames of each thread by minidump_stackwalk, except inlined ones.
func stackwalk(tool, dump, store string) (threads [][]walked, isWindows bool) {
	out, _ := exec.Command(tool, dump, store).Output() // it fails where a thread is unusual
	last, thread := walked{}, -1                       // the thread that crashed comes first
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Operating system: Windows NT") {
			isWindows = true
		}
		if strings.HasPrefix(line, "Loaded modules") {
			break
		}
		if m := threadLine.FindStringSubmatch(line); m != nil {
			thread, _ = strconv.Atoi(m[1])
			for len(threads) <= thread {
				threads = append(threads, nil)
			}
			continue
		}
		if frameLine.MatchString(line) {
			last = walked{}
		}
		if m := pcOf.FindStringSubmatch(line); m != nil {
			last.pc, _ = strconv.ParseUint(m[1]+m[2], 16, 64)
		}
		if m := foundLine.FindStringSubmatch(line); m != nil && last.pc != 0 && m[1] != "inlining" && thread >= 0 {
			last.isGuess = strings.Contains(m[1], "scan") || strings.Contains(m[1], "frame pointer") || strings.Contains(m[1], "simulating")
			threads[thread] = append(threads[thread], last)
		}
	}
	return threads, isWindows
}

// stacks returns the frames of each thread by unwindd.
func (r *rig) stacks(dump, store string) ([][]walked, error) {
	var said bytes.Buffer
	cmd := exec.Command(r.unwindd, "stack", "--format", "json", "--symbols", store, dump)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: %s", err, said.String())
	}
	var document struct {
		Threads []struct {
			Frames []struct {
				PC      string `json:"pc"`
				FoundBy string `json:"found_by"`
				Inlined bool   `json:"inlined"`
			} `json:"frames"`
		} `json:"threads"`
	}
	if err := json.Unmarshal(out, &document); err != nil {
		return nil, err
	}
	var threads [][]walked
	for _, t := range document.Threads {
		var list []walked
		for _, f := range t.Frames {
			if f.Inlined {
				continue
			}
			pc, err := strconv.ParseUint(strings.TrimPrefix(f.PC, "0x"), 16, 64)
			if err != nil {
				return nil, err
			}
			list = append(list, walked{pc, f.FoundBy == "scan" || f.FoundBy == "frame-pointer"})
		}
		threads = append(threads, list)
	}
	return threads, nil
}
