// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The bounds of a run with a damaged file.
const (
	mutationTime   = 10 * time.Second
	mutationMemory = 400 << 10 // KiB
)

// mutations change a PDB file at random.
var mutations = []struct {
	name   string
	change func(random *rand.Rand, data []byte) []byte
}{
	{"bytes", func(random *rand.Rand, data []byte) []byte {
		for range 1 + random.IntN(64) {
			data[random.IntN(len(data))] = byte(random.Uint32())
		}
		return data
	}},
	{"a word", func(random *rand.Rand, data []byte) []byte {
		values := []uint32{0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0x10000, uint32(len(data))} //nolint:gosec // of 32 bits
		for range 1 + random.IntN(8) {
			binary.LittleEndian.PutUint32(data[random.IntN(len(data)-4)&^3:], values[random.IntN(len(values))])
		}
		return data
	}},
	{"the head", func(random *rand.Rand, data []byte) []byte {
		binary.LittleEndian.PutUint32(data[32+4*random.IntN(6):], random.Uint32()>>random.IntN(32))
		return data
	}},
	{"pages over each other", func(random *rand.Rand, data []byte) []byte {
		page := int(binary.LittleEndian.Uint32(data[32:]))
		for range 1 + random.IntN(4) {
			from, to := random.IntN(len(data)/page)*page, random.IntN(len(data)/page)*page
			if to != 0 {
				copy(data[to:to+page], data[from:from+page])
			}
		}
		return data
	}},
	{"cut", func(random *rand.Rand, data []byte) []byte { return data[:random.IntN(len(data))] }},
	{"a record's length", func(random *rand.Rand, data []byte) []byte {
		// Records of symbols and types begin with a length and a kind from 0x1000 on.
		for range 2000 {
			at := random.IntN(len(data)-4) &^ 1
			if kind := binary.LittleEndian.Uint16(data[at+2:]); kind >= 0x1000 && kind < 0x1700 {
				binary.LittleEndian.PutUint16(data[at:], uint16(random.Uint32())) //nolint:gosec // at random
				return data
			}
		}
		return data
	}},
}

// mutate asks for the names of addresses by damaged PDB files: each run must end by itself, in time and
// within its memory, and the rest must be answered as before.
func (r *rig) mutate() error {
	count := 300
	if r.isQuick {
		count = 24
	}
	c := newCount(r.details)
	ends := map[string]int{}
	same, missing, other, theirs := 0, 0, 0, 0
	known := map[string][]string{} // the answers by the files as they were made
	for i := range count {
		p := &r.programs[i%len(r.programs)]
		m := mutations[i%len(mutations)]
		data, err := os.ReadFile(p.pdb)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(uint64(i), 52)) //nolint:gosec // not negative
		dir := filepath.Join(r.dir, "mutated")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		image := filepath.Join(dir, "a.exe")
		whole, err := os.ReadFile(p.image)
		if err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(image, whole, 0o600), os.WriteFile(filepath.Join(dir, "a.pdb"), m.change(random, bytes.Clone(data)), 0o600)); err != nil {
			return err
		}
		_, code, err := codeOf(image)
		if err != nil {
			return err
		}
		addresses := addressesOf(code, 300)
		before := known[p.name]
		if before == nil {
			if before, err = ask(addresses, r.unwindd, "symbolize", "--obj="+p.image); err != nil {
				return err
			}
			known[p.name] = before
		}
		out, end := bounded(addresses, r.unwindd, "symbolize", "--obj="+image)
		ends[end]++
		if end != "ended" && end != "exit status 1" {
			c.differ("? "+end, "mutation %d (%s of %s)", i, m.name, p.name)
		}
		if _, end := bounded(addresses, "llvm-symbolizer-22", "--obj="+image); end != "ended" {
			theirs++
		}
		answers := strings.Split(strings.TrimSuffix(out, "\n\n"), "\n\n")
		if len(answers) != len(addresses) {
			missing += len(addresses)
			continue
		}
		for k := range answers {
			switch {
			case answers[k] == before[k]:
				same++
			case strings.HasPrefix(answers[k], "??") || strings.Contains(answers[k], "??:0:0"):
				missing++
			default:
				other++
			}
		}
	}
	fmt.Printf("%d mutated PDB files: %v; answers: %d as before, %d missing, %d other; llvm-symbolizer fails on %d\n", count, ends, same, missing, other, theirs)
	if n := c.print("mutations"); n > 0 {
		r.fail("%d mutated files", n)
	}
	return nil
}

// bounded runs a symbolizer within the bounds, and says how it ended.
func bounded(addresses []uint64, argv ...string) (out, end string) {
	ctx, cancel := context.WithTimeout(context.Background(), mutationTime)
	defer cancel()
	var in, answers, said bytes.Buffer
	for _, a := range addresses {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &answers, &said
	err := cmd.Run()
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	switch {
	case ctx.Err() != nil:
		return "", "too long"
	case strings.Contains(said.String(), "goroutine "):
		return "", "panic"
	case usage != nil && usage.Maxrss > mutationMemory:
		return "", "too much memory"
	case err != nil:
		return answers.String(), err.Error()
	}
	return answers.String(), "ended"
}
