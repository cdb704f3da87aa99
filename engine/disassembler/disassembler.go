// SPDX-License-Identifier: Apache-2.0

package disassembler

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
)

// Bounds of a run of the tool.
const (
	maxInstructions = 1 << 15 // of one run
	outputRoom      = 1 << 16 // bytes that it may write
	outputPerLine   = 1 << 10 // bytes more for each instruction
	maxText         = 1 << 9  // bytes of the text of one

	processorTime = 5 * time.Second
	wallTime      = 20 * time.Second
)

// A Runner runs a program confined, as plugin.Manager does.
type Runner interface {
	Run(ctx context.Context, p plugin.Program) (*plugin.Output, error)
}

// A Stretch is instructions one behind the other.
type Stretch struct {
	Address uint64 // of the first
	Bytes   []byte
	Sizes   []uint32 // of each instruction, as the architecture's decoder has it; their sum is that of Bytes
}

// A manner is how one of the tools is used.
type manner struct {
	name string
	help string // what its help says of it
	args func(t sdk.LLVMTarget) []string
	// input is what the tool reads for stretches.
	input func(list []Stretch) []byte
	// read takes texts from what the tool wrote.
	read func(out *plugin.Output, list []Stretch, found *found)
}

var manners = []manner{
	{"llvm-mc", "machine code playground", machineCodeArgs, machineCodeInput, readMachineCode},
	{"llvm-objdump", "object file dumper", objectArgs, objectInput, readObject},
}

// A Program is the tool of a path. It may be used concurrently; it is run once at a time.
type Program struct {
	path            string
	runner          Runner
	processor, wall time.Duration

	mu       sync.Mutex
	manner   *manner // nil: not known yet
	failed   error   // why it is not asked any more
	differs  int     // instructions that have another length by the tool
	example  string  // one of them
	refusals int     // instructions that the tool does not know
}

// New makes a Program. It is not run before the first text is asked for.
func New(path string, r Runner) *Program {
	return &Program{path: path, runner: r, processor: processorTime, wall: wallTime}
}

// Texts are those of the instructions of stretches, in their order; "" where the tool has
// none that is taken. Problems says why.
func (p *Program) Texts(ctx context.Context, t sdk.LLVMTarget, list []Stretch) [][]string {
	texts := make([][]string, len(list))
	for i := range list {
		texts[i] = make([]string, len(list[i].Sizes))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := 0; at < len(list) && p.failed == nil && ctx.Err() == nil; {
		end, count := at, 0
		for end < len(list) && (end == at || count+len(list[end].Sizes) <= maxInstructions) {
			count += len(list[end].Sizes)
			end++
		}
		err := p.ask(ctx, t, list[at:end], texts[at:end], count)
		if ctx.Err() == nil {
			p.failed = err
		}
		at = end
	}
	return texts
}

// found is what a tool says of stretches.
type found struct {
	texts   [][]string
	sizes   [][]uint32 // by the tool; 0: it says nothing of the instruction
	isTaken int        // lines that were about instructions at all
}

// ask runs the tool once.
func (p *Program) ask(ctx context.Context, t sdk.LLVMTarget, list []Stretch, texts [][]string, count int) error {
	if err := p.findManner(ctx); err != nil {
		return err
	}
	out, err := p.run(ctx, p.manner.args(t), p.manner.input(list), outputRoom+count*outputPerLine)
	if err != nil {
		return err
	}
	// The tools go on with a processor of their own choice.
	if line := lineWith(out.Stderr, "is not a recognized"); line != "" {
		return errors.New(line)
	}
	f := &found{texts: texts, sizes: make([][]uint32, len(list))}
	for i := range list {
		f.sizes[i] = make([]uint32, len(list[i].Sizes))
	}
	p.manner.read(out, list, f)
	if f.isTaken == 0 && count > 0 {
		if line := lineWith(out.Stderr, ""); line != "" {
			return fmt.Errorf("gave no instruction, and exit status %d: %s", out.Status, line)
		}
		return fmt.Errorf("gave no instruction, and exit status %d", out.Status)
	}
	p.compare(list, f)
	return nil
}

// compare takes back the texts of instructions that are longer or shorter by the tool.
func (p *Program) compare(list []Stretch, f *found) {
	for i := range list {
		address := list[i].Address
		for k, size := range list[i].Sizes {
			switch by := f.sizes[i][k]; {
			case by == 0 || by == size && f.texts[i][k] == "":
				f.texts[i][k] = ""
				p.refusals++
			case by != size:
				f.texts[i][k] = ""
				if p.differs++; p.differs == 1 {
					p.example = fmt.Sprintf("%d bytes at %#x, where the decoder has %d", by, address, size)
				}
			}
			address += uint64(size)
		}
	}
}

// Problems says what was wrong with the tool, in at most one sentence.
func (p *Program) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := "disassembler " + p.path + ": "
	switch {
	case p.failed != nil:
		return []string{said + p.failed.Error() + "; instructions have the text of the architecture's decoder"}
	case p.differs > 0:
		return []string{fmt.Sprintf("%sgives other lengths to %d instructions, the first %s; they keep the decoder's text", said, p.differs, p.example)}
	case p.refusals > 0:
		return []string{fmt.Sprintf("%sdoes not know instructions (%d); they keep the decoder's text", said, p.refusals)}
	}
	return nil
}

// run runs the tool.
func (p *Program) run(ctx context.Context, args []string, input []byte, room int) (*plugin.Output, error) {
	return p.runner.Run(ctx, plugin.Program{
		Path: p.path, Args: args, Input: input, MaxOutput: room, Deadline: p.processor, WallDeadline: p.wall,
	})
}

// versioned is a name of one of the tools, as distributions have them.
var versioned = regexp.MustCompile(`^(llvm-mc|llvm-objdump)(?:[-.][0-9.]+)?(?:\.exe)?$`)

// findManner finds out which tool it is: by its name, by that of the file that a link
// leads to, or by its help.
func (p *Program) findManner(ctx context.Context) error {
	if p.manner != nil {
		return nil
	}
	names := []string{filepath.Base(p.path)}
	if target, err := filepath.EvalSymlinks(p.path); err == nil {
		names = append(names, filepath.Base(target))
	}
	for _, name := range names {
		if m := versioned.FindStringSubmatch(name); m != nil {
			p.manner = mannerOf(func(k *manner) bool { return k.name == m[1] })
			return nil
		}
	}
	out, err := p.run(ctx, []string{"--help"}, nil, outputRoom)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(out.Stdout), "\n")
	p.manner = mannerOf(func(k *manner) bool { return strings.Contains(first, k.help) })
	if p.manner == nil {
		return fmt.Errorf("is neither llvm-mc nor llvm-objdump: its help begins with %q", clip(first))
	}
	return nil
}

func mannerOf(is func(*manner) bool) *manner {
	for i := range manners {
		if is(&manners[i]) {
			return &manners[i]
		}
	}
	return nil
}

// lineWith is the first line of a tool's messages that is not empty and has a text in it.
func lineWith(messages []byte, text string) string {
	for line := range strings.Lines(string(messages)) {
		if line = strings.TrimSpace(line); line != "" && strings.Contains(line, text) {
			return clip(line)
		}
	}
	return ""
}

// clip makes a line of a tool's fit for a message.
func clip(line string) string {
	const most = 200
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, line)
	if len(line) <= most {
		return line
	}
	for cut := most; ; cut-- {
		if utf8.RuneStart(line[cut]) {
			return line[:cut] + "..."
		}
	}
}

// textOf is the text of an instruction as it is shown; "" of what is none: a directive,
// or what cannot be printed.
func textOf(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\t", " "))
	bad := strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
	if len(text) > maxText || bad || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "<unknown>") {
		return ""
	}
	return text
}
