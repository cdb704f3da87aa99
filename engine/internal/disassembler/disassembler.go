// SPDX-License-Identifier: Apache-2.0

package disassembler

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/ondemand"
	"github.com/unwindd/unwindd/sdk"
)

// Bounds of a run of the tool.
const (
	maxInstructions = 1 << 15 // of one run
	baseOutput      = 1 << 16 // bytes of output
	outputPerLine   = 1 << 10 // further bytes of output for each instruction
	maxText         = 1 << 9  // bytes of an instruction's text

	processorTime = 5 * time.Second
	wallTime      = 20 * time.Second
)

// Runner runs a program confined, as plugin.Manager does.
type Runner interface {
	Run(ctx context.Context, p plugin.Program) (*plugin.Output, error)
}

// Stretch is a sequence of adjacent instructions.
type Stretch struct {
	Address uint64 // of the first instruction
	Bytes   []byte
	Sizes   []uint32 // of each instruction, by the architecture's decoder; their sum is the size of the code
}

// style is the input and output format of one of the tools.
type style struct {
	name string
	help string // a text in the tool's help
	args func(t sdk.LLVMTarget) []string
	// input returns the tool's input for stretches.
	input func(list []Stretch) []byte
	// read reads texts from the tool's output.
	read func(out *plugin.Output, list []Stretch, found *found)
	// isNVIDIA: the tool knows NVIDIA's code and no other, and askNVIDIA asks it in place of
	// the functions above.
	isNVIDIA bool
}

var styles = []style{
	{name: "llvm-mc", help: "machine code playground", args: machineCodeArgs, input: machineCodeInput, read: readMachineCode},
	{name: "llvm-objdump", help: "object file dumper", args: objectArgs, input: objectInput, read: readObject},
	{name: "nvdisasm", help: "Usage  : nvdisasm", isNVIDIA: true},
	{name: "cuobjdump", help: "Usage  : cuobjdump", isNVIDIA: true},
}

// takes reports whether the tool knows the code of a target.
func (s *style) takes(t sdk.LLVMTarget) bool {
	return s.isNVIDIA == strings.HasPrefix(t.Triple, "nvptx")
}

// Program is the tool at a path. It may be used concurrently; one process runs at a time.
type Program struct {
	path            string
	runner          Runner
	processor, wall time.Duration

	mu       sync.Mutex
	style    *style // nil if not known yet
	failed   error  // why it is not run any more
	differs  int    // instructions that have another length by the tool
	example  string // one of them
	refusals int    // instructions that the tool does not know
	texts    int    // that it gave
	foreign  int    // instructions of processors that are not the tool's
}

// New makes a Program. It is not run before the first text is requested.
func New(path string, r Runner) *Program {
	return &Program{path: path, runner: r, processor: processorTime, wall: wallTime}
}

// Texts returns the texts of the instructions of stretches, in their order; "" for instructions
// without a valid text, for which Problems has the reason.
func (p *Program) Texts(ctx context.Context, t sdk.LLVMTarget, list []Stretch) [][]string {
	texts := make([][]string, len(list))
	for i := range list {
		texts[i] = make([]string, len(list[i].Sizes))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for next := 0; next < len(list) && p.failed == nil && ctx.Err() == nil; {
		end, count := next, 0
		for end < len(list) && (end == next || count+len(list[end].Sizes) <= maxInstructions) {
			count += len(list[end].Sizes)
			end++
		}
		err := p.ask(ctx, t, list[next:end], texts[next:end], count)
		if ctx.Err() == nil {
			p.failed = err
		}
		next = end
	}
	return texts
}

// found is a tool's result for stretches.
type found struct {
	texts     [][]string
	sizes     [][]uint32 // by the tool; 0 if it does not decode the instruction
	lineCount int        // lines about instructions
}

// ask runs the tool once.
func (p *Program) ask(ctx context.Context, t sdk.LLVMTarget, list []Stretch, texts [][]string, count int) error {
	if err := p.findStyle(ctx); err != nil {
		return err
	}
	if !p.style.takes(t) {
		p.foreign += count
		return nil
	}
	f := newFound(list)
	f.texts = texts
	ask := p.askLLVM
	if p.style.isNVIDIA {
		ask = p.askNVIDIA
	}
	if err := ask(ctx, t, list, f, count); err != nil {
		return err
	}
	if f.lineCount == 0 && count > 0 {
		return errors.New("gave no instruction")
	}
	p.compare(list, f)
	return nil
}

// newFound makes the results of stretches, which are empty.
func newFound(list []Stretch) *found {
	f := &found{texts: make([][]string, len(list)), sizes: make([][]uint32, len(list))}
	for i := range list {
		f.texts[i], f.sizes[i] = make([]string, len(list[i].Sizes)), make([]uint32, len(list[i].Sizes))
	}
	return f
}

// askLLVM runs one of LLVM's tools.
func (p *Program) askLLVM(ctx context.Context, t sdk.LLVMTarget, list []Stretch, f *found, count int) error {
	out, err := p.run(ctx, p.style.args(t), p.style.input(list), baseOutput+count*outputPerLine)
	if err != nil {
		return err
	}
	// The tools continue with a default processor.
	if line := lineWith(out.Stderr, "is not a recognized"); line != "" {
		return errors.New(line)
	}
	p.style.read(out, list, f)
	if f.lineCount > 0 || count == 0 {
		return nil
	}
	if err := refusal(out, ""); err != nil {
		return err
	}
	return fmt.Errorf("gave no instruction, and exit status %d", out.Status)
}

// compare drops the texts of instructions whose length differs from the decoder's.
func (p *Program) compare(list []Stretch, f *found) {
	for i := range list {
		address := list[i].Address
		for k, size := range list[i].Sizes {
			switch toolSize := f.sizes[i][k]; {
			case toolSize == 0 || toolSize == size && f.texts[i][k] == "":
				f.texts[i][k] = ""
				p.refusals++
			case toolSize != size:
				f.texts[i][k] = ""
				if p.differs++; p.differs == 1 {
					p.example = fmt.Sprintf("%d bytes at %#x, where the decoder has %d", toolSize, address, size)
				}
			default:
				p.texts++
			}
			address += uint64(size)
		}
	}
}

// Problems describes the errors of the tool, in at most one sentence.
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
	case p.foreign > 0 && p.texts == 0 && p.style != nil && p.style.isNVIDIA:
		return []string{said + "knows NVIDIA's code alone, and there is none"}
	case p.foreign > 0 && p.texts == 0:
		return []string{said + "does not know NVIDIA's code; nvdisasm does"}
	}
	return nil
}

// run runs the tool.
func (p *Program) run(ctx context.Context, args []string, input []byte, maxOutput int) (*plugin.Output, error) {
	return p.runner.Run(ctx, plugin.Program{
		Path: p.path, Args: args, Input: input, MaxOutput: maxOutput, Deadline: p.processor, WallDeadline: p.wall,
	})
}

// versioned matches the names of the tools in distributions.
var versioned = ondemand.Regexp(`^(llvm-mc|llvm-objdump|nvdisasm|cuobjdump)(?:[-.][0-9.]+)?(?:\.exe)?$`)

// findStyle finds out which tool it is: by its name, by the name of the file that a link leads
// to, or by its help.
func (p *Program) findStyle(ctx context.Context) error {
	if p.style != nil {
		return nil
	}
	names := []string{filepath.Base(p.path)}
	if target, err := filepath.EvalSymlinks(p.path); err == nil {
		names = append(names, filepath.Base(target))
	}
	for _, name := range names {
		if m := versioned().FindStringSubmatch(name); m != nil {
			p.style = styleOf(func(k *style) bool { return k.name == m[1] })
			return nil
		}
	}
	out, err := p.run(ctx, []string{"--help"}, nil, baseOutput)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(strings.TrimLeft(string(out.Stdout), "\n"), "\n")
	p.style = styleOf(func(k *style) bool { return strings.Contains(first, k.help) })
	if p.style == nil {
		return fmt.Errorf("is none of llvm-mc, llvm-objdump, nvdisasm and cuobjdump: its help begins with %q", clip(first))
	}
	return nil
}

func styleOf(matches func(*style) bool) *style {
	for i := range styles {
		if matches(&styles[i]) {
			return &styles[i]
		}
	}
	return nil
}

// lineWith returns the first line of a tool's messages that contains a text and is not empty.
func lineWith(messages []byte, text string) string {
	for line := range strings.Lines(string(messages)) {
		if line = strings.TrimSpace(line); line != "" && strings.Contains(line, text) {
			return clip(line)
		}
	}
	return ""
}

// clip shortens a line of a tool's output for a message.
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

// textOf returns the text of an instruction as it is shown; "" for a directive, and for a text
// that cannot be printed.
func textOf(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\t", " "))
	bad := strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
	if len(text) > maxText || bad || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "<unknown>") {
		return ""
	}
	return text
}
