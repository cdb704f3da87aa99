// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// row is a row of `unwindd dump lines`.
type row struct {
	Section    string
	Start, End string
	Frames     []frame
	PTX        []struct {
		Start, End string
		Line       int
	}
	start, end uint64
}

type frame struct {
	Function, File string
	Line           int
}

// instruction is an instruction in the output of nvdisasm. nvdisasm prints a chain where the innermost
// line is another than before: elsewhere the first line of the chain alone is known.
type instruction struct {
	offset    uint64
	chain     []string // FILE:LINE, innermost first, that was printed last
	isPrinted bool     // before this instruction
	// before is the last line of the section before, where none of this one was printed yet: nvdisasm
	// does not print it again.
	before string
}

// section is a section of code in the output of nvdisasm.
type section struct {
	name         string
	functions    int
	instructions []instruction
}

var (
	sectionLine  = regexp.MustCompile(`^\s*\.section\s+(\.text[^,]*?),"`)
	functionLine = regexp.MustCompile(`^\s*\.type\s+\S+,@function`)
	positionLine = regexp.MustCompile(`^\s*//## File "(.*?)", line (\d+)(?: inlined at ".*", line \d+)?\s*$`)
	codeLine     = regexp.MustCompile(`^\s*/\*([0-9a-f]{4,})\*/\s`)
)

// disassemble reads the output of nvdisasm. flag is -gi, or -gp for lines of PTX.
func (p *peer) disassemble(cubin, flag string, isOld bool) ([]section, error) {
	tool, err := p.tools.disassembler(isOld)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(tool, flag, "-c", cubin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, stderr.Bytes())
	}
	var list []section
	var chain, pending []string
	before := ""
	for line := range strings.Lines(string(out)) {
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			if len(chain) > 0 {
				before = chain[0]
			}
			list, chain, pending = append(list, section{name: m[1]}), nil, nil
			continue
		}
		if len(list) == 0 {
			continue
		}
		s := &list[len(list)-1]
		if functionLine.MatchString(line) {
			s.functions++
		} else if m := positionLine.FindStringSubmatch(line); m != nil {
			pending = append(pending, m[1]+":"+m[2])
		} else if m := codeLine.FindStringSubmatch(line); m != nil {
			isPrinted := pending != nil
			if isPrinted {
				chain, pending = pending, nil
			}
			offset, err := strconv.ParseUint(m[1], 16, 64)
			if err != nil {
				return nil, err
			}
			s.instructions = append(s.instructions, instruction{offset, chain, isPrinted, before})
		}
	}
	return list, nil
}

// lines are the rows of `unwindd dump lines` by section, by address.
func (p *peer) lines(cubin string) (map[string][]row, error) {
	cmd := exec.Command(p.unwindd, "dump", "lines", "--format", "json", cubin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, stderr.Bytes())
	}
	var all struct {
		Rows     []row
		Problems []string
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	if len(all.Problems) > 0 {
		return nil, fmt.Errorf("%s: problems: %s", cubin, strings.Join(all.Problems, "; "))
	}
	bySection := map[string][]row{}
	for _, r := range all.Rows {
		r.start, r.end = number(r.Start), number(r.End)
		bySection[r.Section] = append(bySection[r.Section], r)
	}
	return bySection, nil
}

func number(text string) uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		return ^uint64(0)
	}
	return n
}

// at is the row that has an offset; nil: none has.
func at(rows []row, offset uint64) *row {
	i := sort.Search(len(rows), func(i int) bool { return rows[i].start > offset }) - 1
	if i < 0 || offset >= rows[i].end {
		return nil
	}
	return &rows[i]
}

// compare holds the lines of a cubin against nvdisasm's.
func (p *peer) compare(compiler, cubin string, isOld bool) error {
	rows, err := p.lines(cubin)
	if err != nil {
		return err
	}
	c := p.counts[compiler]
	if c == nil {
		c = &count{}
		p.counts[compiler] = c
	}
	c.files++
	sections, err := p.disassemble(cubin, "-gi", isOld)
	if err != nil {
		return err
	}
	for _, s := range sections {
		c.functions += s.functions
		for _, i := range s.instructions {
			c.instruction(filepath.Base(cubin)+" "+s.name, &i, at(rows[s.name], i.offset))
		}
	}
	if sections, err = p.disassemble(cubin, "-gp", isOld); err != nil {
		return err
	}
	for _, s := range sections {
		for _, i := range s.instructions {
			c.assembly(filepath.Base(cubin)+" "+s.name, &i, at(rows[s.name], i.offset))
		}
	}
	return nil
}

// instruction compares the chain of an instruction, or its first line where nvdisasm has no more:
// of inlined calls in .debug_info it knows nothing.
func (c *count) instruction(where string, i *instruction, r *row) {
	c.instructions++
	var chain []string
	if r != nil {
		for _, f := range r.Frames {
			chain = append(chain, fmt.Sprintf("%s:%d", f.File, f.Line))
		}
	}
	theirs := strings.Join(i.chain, " <- ")
	switch {
	case len(i.chain) == 0 && len(chain) > 0 && chain[0] == i.before:
		return
	case !i.isPrinted && len(i.chain) > 0, strings.Contains(where, "-G-") && len(i.chain) == 1:
		chain, theirs = chain[:min(len(chain), 1)], i.chain[0]
	case i.isPrinted && len(i.chain) > 1:
		c.chains, c.longest = c.chains+1, max(c.longest, len(i.chain))
	}
	if ours := strings.Join(chain, " <- "); ours != theirs {
		c.different = append(c.different, fmt.Sprintf("%s+%#x: %q, nvdisasm %q", where, i.offset, ours, theirs))
	}
}

// assembly compares the line of PTX of an instruction that has a line of the source.
func (c *count) assembly(where string, i *instruction, r *row) {
	if r == nil || len(i.chain) == 0 {
		return
	}
	c.ptx++
	_, theirs, _ := strings.Cut(i.chain[0], ":")
	for _, x := range r.PTX {
		if number(x.Start) <= i.offset && i.offset < number(x.End) {
			if strconv.Itoa(x.Line) != theirs {
				c.different = append(c.different, fmt.Sprintf("%s+%#x: PTX %d, nvdisasm %s", where, i.offset, x.Line, i.chain[0]))
			}
			return
		}
	}
	c.different = append(c.different, fmt.Sprintf("%s+%#x: no line of PTX, nvdisasm %s", where, i.offset, i.chain[0]))
}
