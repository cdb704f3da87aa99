// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// codeSources are compiled for each processor.
var codeSources = []struct{ name, level string }{{"amd_k.cl", "-O0"}, {"amd_k.cl", "-O2"}, {"amd_h.hip", "-O2"}}

// codeProcessors are of all generations. A wave of 64 lanes where 32 are usual has other
// texts.
var codeProcessors = []struct {
	name  string
	lanes uint32
}{
	{"gfx900", 64}, {"gfx908", 64}, {"gfx90a", 64}, {"gfx942", 64}, {"gfx950", 64},
	{"gfx1030", 32}, {"gfx1030", 64}, {"gfx1100", 32}, {"gfx1201", 32}, {"gfx1250", 32}, {"gfx1251", 32},
}

// kernelLibrary has the functions that OpenCL's sources call.
const kernelLibrary = `unsigned long __attribute__((overloadable)) get_global_id(unsigned d) {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}
unsigned long __attribute__((overloadable)) get_local_id(unsigned d) { return __builtin_amdgcn_workitem_id_x(); }
void __attribute__((overloadable)) barrier(unsigned flags) { __builtin_amdgcn_s_barrier(); }
`

// compileCode compiles the sources for a processor.
func compileCode(t *testing.T, processor string, lanes uint32) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	library := filepath.Join(dir, "library.cl")
	if err := os.WriteFile(library, []byte(kernelLibrary), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, s := range codeSources {
		source, err := filepath.Abs(filepath.Join("../plugins/amdgpu/testdata", s.name))
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, fmt.Sprintf("%d.co", i))
		args := []string{"-nogpulib", "-w", s.level, "-o", out}
		if processor >= "gfx1" && processor < "gfx2" && lanes == 64 {
			args = append(args, "-mwavefrontsize64")
		}
		if strings.HasSuffix(s.name, ".hip") {
			args = append(args, "-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "--offload-arch="+processor, "-nogpuinc", source)
		} else {
			args = append(args, "-target", "amdgcn-amd-amdhsa", "-mcpu="+processor, "-x", "cl", "-cl-std=CL2.0", source, library)
		}
		oracle.Run(t, "clang-22", args...)
		paths = append(paths, out)
	}
	return paths
}

// gpuLine is an instruction as llvm-objdump lists it.
var gpuLine = regexp.MustCompile(`(?m)^\t(\S.*?)\s*// ([0-9A-F]+): ([0-9A-F ]+)(?:<.*)?$`)

type gpuInstruction struct {
	size int
	text string
}

// gpuListing reads the listing of a file by llvm-objdump.
func gpuListing(t *testing.T, path string, args ...string) (instructions map[uint64]gpuInstruction, order []uint64) {
	t.Helper()
	instructions = map[uint64]gpuInstruction{}
	out := oracle.Run(t, "llvm-objdump-22", append(args, "-d", path)...)
	for _, m := range gpuLine.FindAllStringSubmatch(out, -1) {
		address, err := strconv.ParseUint(m[2], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		instructions[address] = gpuInstruction{4 * len(strings.Fields(m[3])), m[1]}
		order = append(order, address)
	}
	return instructions, order
}

// A gpuCode is a target with one code object, of which the code is shown.
type gpuCode struct {
	target *engine.Target
	module *target.Module
	lanes  uint32
}

func openCode(t *testing.T, path, processor string, lanes uint32, program string) *gpuCode {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{amdgpu.New()}, Self: self}, Disassembler: program,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	file, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	m := &target.Module{Module: trace.Module{Path: path, Arch: "amdgpu", Processor: processor, File: path}, Object: file}
	for _, s := range file.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: loadedAt + s.Address, Executable: s.Executable()})
	}
	tg := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "amdgpu", ThreadID: "1"}, Loaded: []*target.Module{m}})
	return &gpuCode{tg, m, lanes}
}

// shown is the code of frames at PCs, exact ones and return addresses.
func (g *gpuCode) shown(exact, returns []uint64, count int) (codes []*trace.FrameCode) {
	th := g.target.Threads()[0]
	s := &trace.Stack{Thread: th, Lanes: g.lanes}
	for i, list := range [][]uint64{exact, returns} {
		for _, pc := range list {
			s.Frames = append(s.Frames, trace.Frame{PC: loadedAt + pc, Exact: i == 0, Module: &g.module.Module})
		}
	}
	reader := g.target.CodeReader(count)
	reader.Prepare(context.Background(), []*trace.Stack{s})
	for i := range s.Frames {
		codes = append(codes, reader.Of(context.Background(), th, &s.Frames[i]))
	}
	return codes
}

// checkCode holds the code at each PC against a listing.
func checkCode(c *trace.FrameCode, pc uint64, isReturn bool, listed map[uint64]gpuInstruction, hasTexts bool) error {
	if c.Problem != "" {
		return fmt.Errorf("at %#x: %s", pc, c.Problem)
	}
	current := 0
	for i := range c.Lines {
		l := &c.Lines[i]
		address := l.Address - loadedAt
		want, ok := listed[address]
		end := address + uint64(len(l.Bytes))
		isAt := address == pc && !isReturn || end == pc && isReturn
		switch {
		case !ok || want.size != len(l.Bytes):
			return fmt.Errorf("at %#x: %#x has %d bytes, llvm-objdump %d", pc, address, len(l.Bytes), want.size)
		case isAt != l.IsAt:
			return fmt.Errorf("at %#x: %#x is current: %v", pc, address, l.IsAt)
		case hasTexts && l.Text != want.text:
			return fmt.Errorf("at %#x: %#x is %q, llvm-objdump has %q", pc, address, l.Text, want.text)
		case !hasTexts && !strings.HasPrefix(l.Text, ".long 0x"+words(l.Bytes[:4])):
			return fmt.Errorf("at %#x: %#x is %q, its bytes are % x", pc, address, l.Text, l.Bytes)
		case l.IsAt:
			current++
		}
	}
	if current != 1 || len(c.Lines) != 5 {
		return fmt.Errorf("at %#x: %d instructions, %d of them current", pc, len(c.Lines), current)
	}
	return nil
}

// words is a word in hexadecimal as it is in a register.
func words(code []byte) string {
	b := bytes.Clone(code)
	b[0], b[1], b[2], b[3] = b[3], b[2], b[1], b[0]
	return hex.EncodeToString(b)
}

// TestCodeEqualsLLVM holds the code at PCs of all generations against llvm-objdump: through
// llvm-mc and through llvm-objdump all texts are equal, and without them all lengths.
func TestCodeEqualsLLVM(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for nine processors")
	}
	oracle.Tools(t, "clang-22", "ld.lld-22")
	programs := []string{"", oracle.Tool(t, "llvm-mc-22"), oracle.Tool(t, "llvm-objdump-22")}
	total := 0
	for _, p := range codeProcessors {
		t.Run(fmt.Sprintf("%s of %d lanes", p.name, p.lanes), func(t *testing.T) {
			var args []string
			if p.name == "gfx1030" && p.lanes == 64 {
				args = []string{"--mattr=+wavefrontsize64"}
			}
			for _, path := range compileCode(t, p.name, p.lanes) {
				for _, program := range programs {
					total += codeEquals(t, openCode(t, path, p.name, p.lanes, program), path, program != "", args)
				}
			}
		})
	}
	t.Logf("code at %d PCs", total)
	if total < 3000 {
		t.Errorf("code at %d PCs, expected 3,000 or more: 1,000 in each way", total)
	}
}

// TestCodeOfCorpusEqualsLLVM is the same of code objects beside the checkout.
func TestCodeOfCorpusEqualsLLVM(t *testing.T) {
	if testing.Short() {
		t.Skip("one way of TestCodeEqualsLLVM")
	}
	program := oracle.Tool(t, "llvm-mc-22")
	oracle.Tools(t, "llvm-objdump-22")
	total := 0
	for _, path := range oracle.Beside(t, "corpus/amdgpu/O?/*.co") {
		processor := strings.Split(filepath.Base(path), ".")[1]
		lanes := uint32(64)
		if strings.HasPrefix(processor, "gfx1") {
			lanes = 32
		}
		total += codeEquals(t, openCode(t, path, processor, lanes, program), path, true, nil)
	}
	t.Logf("code at %d PCs", total)
}

// inFunctions are addresses that functions of a file have, without what fills the room
// between them, and without functions of less than five instructions.
func inFunctions(t *testing.T, path string, addresses []uint64) []uint64 {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(addresses, func(a uint64) bool {
		return !slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
			return elf.ST_TYPE(s.Info) == elf.STT_FUNC && a-s.Value < s.Size && s.Size >= 64
		})
	})
}

// codeEquals holds code at fifty PCs or so against llvm-objdump, or with UNWINDD_PROOF=1
// at every one.
func codeEquals(t *testing.T, g *gpuCode, path string, hasTexts bool, args []string) (count int) {
	t.Helper()
	listed, order := gpuListing(t, path, args...)
	order = inFunctions(t, path, order)
	var exact, returns []uint64
	step := max(1, len(order)/50)
	if proof.IsRequested() {
		step = 1
	}
	for i := 0; i < len(order); i += step {
		exact = append(exact, order[i])
		if strings.HasPrefix(listed[order[i]].text, "s_swappc") && i+1 < len(order) {
			returns = append(returns, order[i+1])
		}
	}
	for i, c := range g.shown(exact, returns, 5) {
		pc, isReturn := slices.Concat(exact, returns)[i], i >= len(exact)
		if err := checkCode(c, pc, isReturn, listed, hasTexts); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		count++
	}
	for _, problem := range g.target.Problems() {
		t.Errorf("%s: %s", path, problem)
	}
	return count
}
