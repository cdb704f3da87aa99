// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// frameCodes provides the code of frames; nil: it is not requested.
type frameCodes struct {
	ctx    context.Context
	reader *walk.CodeReader
}

// ShowCode makes the reports include the code at the PC of each physical frame.
func (s *Stacks) ShowCode(ctx context.Context, reader *walk.CodeReader) {
	s.code = &frameCodes{ctx, reader}
}

// codeStacks is the largest number of stacks whose code is requested together.
const codeStacks = 1 << 11

// size is the largest number of instructions of a stack.
func (c *frameCodes) size(s *trace.Stack) int {
	frames := len(s.Frames)
	for i := range s.Launchers {
		frames += len(s.Launchers[i].Frames)
	}
	return frames * c.reader.Count()
}

// withCode yields the stacks of each, with their code requested in batches.
func (s *Stacks) withCode() iter.Seq[*trace.Stack] {
	if s.code == nil {
		return s.each
	}
	return func(yield func(*trace.Stack) bool) {
		var pending []*trace.Stack
		size := 0
		pass := func() bool {
			s.code.reader.Prepare(s.code.ctx, pending)
			for _, stack := range pending {
				if !yield(stack) {
					return false
				}
			}
			pending, size = pending[:0], 0
			return true
		}
		for stack := range s.each {
			pending = append(pending, stack)
			size += s.code.size(stack)
			if (len(pending) == codeStacks || size >= walk.MaxPrepared) && !pass() {
				return
			}
		}
		pass()
	}
}

// prepare requests the code of the first groups, and returns how many they are.
func (c *frameCodes) prepare(groups []*group) (count int) {
	if c == nil {
		return len(groups)
	}
	var stacks []*trace.Stack
	for size := 0; count < len(groups) && size < walk.MaxPrepared; count++ {
		stacks = append(stacks, groups[count].first)
		size += c.size(groups[count].first)
	}
	c.reader.Prepare(c.ctx, stacks)
	return count
}

// code is the code of a frame of a thread; nil: it is not requested, or the frame has none.
func (c *frameCodes) code(th *trace.Thread, f *trace.Frame) *trace.FrameCode {
	if c == nil || !f.IsNative() {
		return nil
	}
	return c.reader.Of(c.ctx, th, f)
}

// maxBytesColumn is the largest width of the column of bytes, in characters.
const maxBytesColumn = 29

// code writes the instructions around the PC of a frame.
func (t *text) code(f *trace.Frame, s *trace.Symbol) {
	c := t.codes.code(t.thread, f)
	if c == nil {
		return
	}
	if len(c.Lines) == 0 {
		t.printf(localsIndent+"%s\n", t.faint("no code: "+c.Problem))
		return
	}
	if c.Problem != "" {
		t.printf(localsIndent+"%s\n", t.faint(c.Problem))
	}
	names, widest, longest := make([]string, len(c.Lines)), 0, 0
	for i := range c.Lines {
		names[i] = codeName(f, s, &c.Lines[i])
		widest = max(widest, len(names[i]))
		longest = max(longest, 3*len(c.Lines[i].Bytes)-1)
	}
	longest = min(longest, maxBytesColumn)
	for i := range c.Lines {
		l := &c.Lines[i]
		address := fmt.Sprintf("0x%016x", l.Address)
		if l.IsAt {
			t.printf("      > %s", t.header(address))
		} else {
			t.printf(localsIndent+"%s", t.faint(address))
		}
		if widest > 0 {
			t.printf(" %-*s", widest, names[i])
		}
		t.printf("  %s  %s\n", t.faint(fmt.Sprintf("%-*s", longest, spaced(l.Bytes))), l.Text)
	}
}

// codeName is the place of an instruction in the function of a frame, or in its module.
func codeName(f *trace.Frame, s *trace.Symbol, l *trace.Instruction) string {
	elfAddress := f.ModuleOffset + l.Address - f.PC
	switch {
	case f.Module == nil:
		return ""
	case s.Function == "" || !s.HasStart:
		return "<" + address(elfAddress) + ">"
	case elfAddress < s.Start:
		return "<" + offset(elfAddress, s.Start) + ">"
	}
	return "<+" + offset(elfAddress, s.Start) + ">"
}

// spaced is bytes in hexadecimal.
func spaced(code []byte) string {
	parts := make([]string, len(code))
	for i := range code {
		parts[i] = hex.EncodeToString(code[i : i+1])
	}
	return strings.Join(parts, " ")
}

// code writes the instructions around the PC of a frame as a list.
func (j *stackJSON) code(th *trace.Thread, f *trace.Frame) {
	c := j.codes.code(th, f)
	if c == nil {
		return
	}
	j.list("code", len(c.Lines), func(i int) {
		l := &c.Lines[i]
		j.hexMember("pc", l.Address)
		j.stringMember("bytes", hex.EncodeToString(l.Bytes))
		j.stringMember("text", l.Text)
		j.boolMember("current", l.IsAt)
	})
	j.textMember("code_problem", c.Problem)
}
