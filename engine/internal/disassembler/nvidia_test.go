// SPDX-License-Identifier: Apache-2.0

package disassembler

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

var sm90 = sdk.LLVMTarget{Triple: "nvptx64-nvidia-cuda", CPU: "sm_90"}

// wide is code of instructions of two words of 8 bytes.
func wide(address uint64, words ...uint64) Stretch {
	s := Stretch{Address: address}
	for i, w := range words {
		s.Bytes = binary.LittleEndian.AppendUint64(s.Bytes, w)
		if i%2 == 0 {
			s.Sizes = append(s.Sizes, 16)
		}
	}
	return s
}

// hopperCode is code of sm_90 as ptxas wrote it: a load of which the address is a move's, a call 0x380
// bytes ahead, and elsewhere a branch 0xc0 bytes back behind an instruction that there is not.
func hopperCode() []Stretch {
	return []Stretch{
		wide(0x7f0000001120, 0x0000002412047981, 0x000162000c1e1900, 0x0000016000147802, 0x000fe20000000f00,
			0x0000000000dc7944, 0x021fea0003c00000),
		wide(0x7f9000000010, 0x000000000000094d, 0x000fea0003800000, ^uint64(0), ^uint64(0), 0x000000000000094d, 0x000fea0003800000),
	}
}

// fakeTool answers each run by a function.
type fakeTool func(p plugin.Program) *plugin.Output

func (f fakeTool) Run(_ context.Context, p plugin.Program) (*plugin.Output, error) { return f(p), nil }

// TestNVIDIA lists code of two stretches and one instruction that the tool does not know: it is
// run again without that, and addresses of branches are the stretch's own.
func TestNVIDIA(t *testing.T) {
	runs := 0
	tool := fakeTool(func(p plugin.Program) *plugin.Output {
		if want := "--binary SM90 --base-address 0xf00000000000000 /dev/stdin"; strings.Join(p.Args, " ") != want || !p.InputIsFile {
			t.Fatalf("arguments %q, expected %s", p.Args, want)
		}
		if runs++; runs == 1 {
			if len(p.Input) != 0x60 {
				t.Errorf("%d bytes of code, expected two stretches and what aligns the second", len(p.Input))
			}
			return &plugin.Output{Stderr: []byte("nvdisasm error   : Unrecognized operation for functional unit 'uC' at address 0xf00000000000040\n" +
				"nvdisasm error   : Illegal instruction found\n"), Status: 255}
		}
		return &plugin.Output{Stdout: []byte(`	.headerflags	@"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*f00000000000000*/                   LDG.E R4, desc[UR36][R18.64] ;
        /*f00000000000010*/                   MOV R20, 0x160 ;
        /*f00000000000020*/                   CALL.REL.NOINC 0xf000000000003a0 ;
        /*f00000000000030*/               @P0 EXIT ;
        /*f00000000000040*/               @P0 EXIT ;
        /*f00000000000050*/                   BRA 0xefffffffffffff0 ;
`)}
	})
	p := New("/x/nvdisasm", tool)
	list := hopperCode()
	want := [][]string{
		{"LDG.E R4, desc[UR36][R18.64]", "MOV R20, 0x160", "CALL.REL.NOINC 0x7f00000014c0"},
		{"@P0 EXIT", "", "BRA 0x7f8fffffffd0"},
	}
	// The third stretch of the second run begins at 0x50 for 0x7f9000000030.
	if diff := cmp.Diff(want, p.Texts(context.Background(), sm90, list)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := p.Problems(); runs != 2 || len(got) != 1 || !strings.Contains(got[0], "does not know instructions (1)") {
		t.Errorf("%d runs, %q", runs, got)
	}
}

// TestNVIDIABadTools: errors become one sentence; other machines' code keeps its text without one as
// long as there is NVIDIA's.
func TestNVIDIABadTools(t *testing.T) {
	many := hopperCode()
	for i := range uint64(8) {
		many = append(many, wide(0x1000*i, 0x000000000000094d, 0x000fea0003800000))
	}
	for _, c := range []struct {
		what, problem string
		output        func() *plugin.Output
	}{
		{"does not know the processor", "exit status 1: nvdisasm fatal   : Value 'SM90' is not defined for option 'binary'", func() *plugin.Output {
			return &plugin.Output{Stderr: []byte("nvdisasm fatal   : Value 'SM90' is not defined for option 'binary'\n"), Status: 1}
		}},
		{"says nothing", "gave no instruction", func() *plugin.Output { return &plugin.Output{} }},
		{"finds one more each time", "does not know more instructions each time", func() *plugin.Output {
			return &plugin.Output{Stderr: fmt.Appendf(nil, "nvdisasm error   : at address %#x\nnvdisasm error   : at address %#x\n", nvidiaBase, nvidiaBase+16)}
		}},
		{"does not know an address that it was not asked about", "gave no instruction", func() *plugin.Output {
			return &plugin.Output{Stderr: []byte("nvdisasm error   : at address 0x123451\n")}
		}},
	} {
		p := New("/x/nvdisasm", fakeTool(func(plugin.Program) *plugin.Output { return c.output() }))
		p.Texts(context.Background(), sm90, many)
		if got := p.Problems(); len(got) != 1 || !strings.Contains(got[0], c.problem) {
			t.Errorf("a tool that %s: %q, expected %q", c.what, got, c.problem)
		}
	}
	never := fakeTool(func(plugin.Program) *plugin.Output { t.Error("the tool was run"); return &plugin.Output{} })
	for path, c := range map[string]struct {
		t       sdk.LLVMTarget
		problem string
	}{
		"/x/nvdisasm": {gfx90a, "knows NVIDIA's code alone, and there is none"},
		"/x/llvm-mc":  {sm90, "does not know NVIDIA's code; nvdisasm does"},
	} {
		p := New(path, never)
		p.Texts(context.Background(), c.t, hopperCode())
		if got := p.Problems(); len(got) != 1 || !strings.Contains(got[0], c.problem) {
			t.Errorf("%s: %q, expected %q", path, got, c.problem)
		}
	}
}

// TestNVIDIABesideCuobjdump: cuobjdump starts nvdisasm, so that is run.
func TestNVIDIABesideCuobjdump(t *testing.T) {
	dir := t.TempDir()
	cuobjdump, nvdisasm := filepath.Join(dir, "cuobjdump"), filepath.Join(dir, "nvdisasm")
	p := New(cuobjdump, fakeTool(func(plugin.Program) *plugin.Output { return &plugin.Output{} }))
	p.Texts(context.Background(), sm90, hopperCode())
	if got := p.Problems(); len(got) != 1 || !strings.Contains(got[0], "starts nvdisasm, which is not beside it") {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(nvdisasm, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	ran := ""
	p = New(cuobjdump, fakeTool(func(p plugin.Program) *plugin.Output { ran = p.Path; return &plugin.Output{} }))
	p.Texts(context.Background(), sm90, hopperCode())
	if ran != nvdisasm {
		t.Errorf("%q was run, expected %s", ran, nvdisasm)
	}
}

// TestNVIDIANarrow lists code of sm_61 from the middle of a bundle on, by the answers of nvdisasm 12.4:
// what schedules instructions is put before the first, and has no text of the tool's.
func TestNVIDIANarrow(t *testing.T) {
	s := Stretch{Address: 0x7f0000000010, Sizes: []uint32{8, 8, 8, 8}}
	for _, word := range []uint64{0x4c98078005270011, 0xf0c8000002570011, 0x001f8000fc0007e0, 0xeed4200000071400} {
		s.Bytes = binary.LittleEndian.AppendUint64(s.Bytes, word)
	}
	var input []byte
	p := New("/x/nvdisasm", fakeTool(func(p plugin.Program) *plugin.Output {
		input = p.Input
		return &plugin.Output{Stdout: []byte("        /*f00000000000008*/                   MOV R17, c[0x0][0x148] ;\n" +
			"        /*f00000000000010*/         {         MOV R17, c[0x0][0x148];\n        /*f00000000000018*/                   S2R R17, SR_CTAID.X         }\n" +
			"        /*f00000000000028*/                   LDG.E R0, [R20] ;\n")}
	}))
	want := [][]string{{"MOV R17, c[0x0][0x148]", "S2R R17, SR_CTAID.X", "0x001f8000fc0007e0 // schedules the next three", "LDG.E R0, [R20]"}}
	if diff := cmp.Diff(want, p.Texts(context.Background(), sdk.LLVMTarget{Triple: "nvptx64-nvidia-cuda", CPU: "sm_61"}, []Stretch{s})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if p.Problems() != nil || len(input) != 64 || binary.LittleEndian.Uint64(input) != nvidiaSchedule || binary.LittleEndian.Uint64(input[8:]) != nvidiaNothing {
		t.Errorf("%q, %x", p.Problems(), input)
	}
}

// TestNVIDIATool asks nvdisasm itself, confined, where it is installed.
func TestNVIDIATool(t *testing.T) {
	oracle.All(t)
	path, err := exec.LookPath("nvdisasm")
	if err != nil {
		t.Skip("nvdisasm (PyPI: nvidia-cuda-nvdisasm) is not installed")
	}
	p := New(path, manager(t))
	want := [][]string{
		{"LDG.E R4, desc[UR36][R18.64]", "MOV R20, 0x160", "CALL.REL.NOINC 0x7f00000014c0"},
		{"@P0 EXIT", "", "@P0 EXIT"},
	}
	if diff := cmp.Diff(want, p.Texts(context.Background(), sm90, hopperCode())); diff != "" {
		t.Errorf("(-want +got)\n%s\n%q", diff, p.Problems())
	}
}
