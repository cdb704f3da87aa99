// SPDX-License-Identifier: Apache-2.0

package job

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// asked makes a job of the flags of the command. The target is a path, and the unit as in
// ParseUnit; "": there is none.
func asked(args ...string) (e Evaluate, target, unit string) {
	e = NewEvaluate()
	flags := flag.NewFlagSet("eval", flag.PanicOnError)
	for name, text := range map[string]*string{
		"arch": &e.Arch, "snapshot": &target, "thread": &e.Thread, "cfa": &e.Cfa, "object": &e.Object, "processor": &e.Processor,
		"kind": &e.Kind, "unit": &unit, "var": &e.Var,
	} {
		flags.StringVar(text, name, "", "")
	}
	for name, list := range map[string]*[]string{"reg": &e.Reg, "mem": &e.Mem, "stack": &e.Stack} {
		flags.Func(name, "", func(text string) error { *list = append(*list, text); return nil })
	}
	flags.Func("expr", "", func(text string) error { e.Expr = &text; return nil })
	flags.Func("lane", "", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 32)
		e.Lane = new(uint32(n))
		return err
	})
	for name, number := range map[string]*uint32{"wave": &e.Wave, "read": &e.Read, "frame": &e.Frame, "depth": &e.Depth} {
		flags.Func(name, "", func(text string) (err error) { _, err = fmt.Sscan(text, number); return err })
	}
	flags.BoolVar(&e.Trace, "trace", false, "")
	_ = flags.Parse(args) // it panics
	return e, target, unit
}

// A written is a result in both forms.
type written struct{ text, json string }

// evaluated is what an expression gives that flags ask for.
func evaluated(t *testing.T, args ...string) (w written, err error) {
	t.Helper()
	ask, path, unit := asked(args...)
	if err := ask.Check(path != ""); err != nil {
		return w, err
	}
	architectures := []sdk.Architecture{x86_64.New(), amdgpu.New()}
	e, err := engine.New(ask.Engine(engine.Options{MaxFrames: engine.DefaultMaxFrames, Plugins: plugin.Options{InProcess: architectures}}))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x, err := ask.Expression(e)
	if err != nil {
		return w, err
	}
	if unit != "" {
		u, err := ParseUnit(unit)
		if err != nil {
			return w, err
		}
		if err := x.InUnit(u, nil); err != nil {
			return w, err
		}
		defer u.Close()
	}
	var state *engine.Target
	if path != "" {
		if state, err = e.Open(path); err != nil {
			t.Fatal(err)
		}
	}
	found, err := x.Evaluate(t.Context(), state)
	if err != nil {
		return w, err
	}
	var text, document strings.Builder
	if err := errors.Join(found.WriteText(&text, report.TextOptions{}), found.WriteJSON(&document)); err != nil {
		t.Fatal(err)
	}
	return written{text.String(), document.String()}, found.Err
}

// lanes32 is a vector register of 32 lanes that hold their numbers.
var lanes32 = func() string {
	var b strings.Builder
	for i := range 32 {
		b.WriteString(string("0123456789abcdef"[i/16]) + string("0123456789abcdef"[i%16]) + "000000")
	}
	return b.String()
}()

func TestExpressions(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string // compact JSON
	}{
		{"a value of the generic type", []string{"--arch", "x86_64", "--expr", "lit5; lit3; minus"},
			`{"kind":"value","value":{"type":"generic","hex":"0x2"}}`},
		{"the empty expression is undefined", []string{"--arch", "x86_64", "--expr", ""},
			`{"kind":"location","places":[{"storage":"undefined"}]}`},
		{"memory by a register", []string{"--arch", "x86_64", "--expr", "bregx rsp, 8", "--reg", "rsp=0x1000", "--kind", "location"},
			`{"kind":"location","places":[{"storage":"memory","space":"global","address":"0x1008","bit_offset":0}]}`},
		{"what is there", []string{"--arch", "x86_64", "--expr", "bregx rbp, -8; deref", "--reg", "RBP=1008", "--mem", "global:0x1000=2a00000000000000"},
			`{"kind":"value","value":{"type":"generic","hex":"0x2a"}}`},
		{"the CFA", []string{"--arch", "x86_64", "--expr", "call_frame_cfa; lit16; minus", "--cfa", "none:7000", "--kind", "value"},
			`{"kind":"value","value":{"type":"generic","hex":"0x6ff0"}}`},
		{"an object", []string{"--arch", "x86_64", "--expr", "push_object_address; plus_uconst 8", "--object", "addr 0x400", "--kind", "location"},
			`{"kind":"location","places":[{"storage":"memory","space":"global","address":"0x408","bit_offset":0}]}`},
		{"a lane of a spilled register", []string{"--arch", "amdgpu", "--wave", "32", "--expr", "DW_OP_regx VGPR0; DW_OP_LLVM_offset_uconst 20",
			"--reg", "v0=" + lanes32, "--read", "32"},
			`{"kind":"location","places":[{"storage":"register","register":"v0","thread":"1","frame":0,"bit_offset":160}],"read":"05000000"}`},
		{"private memory of a lane", []string{"--arch", "amdgpu", "--processor", "gfx90a", "--expr", "lit8; lit5; LLVM_form_aspace_address",
			"--lane", "3", "--mem", "private_wave:0x20c=78563412", "--read", "32"},
			`{"kind":"location","places":[{"storage":"memory","space":"private_lane","address":"0x8","thread":"1","frame":0,"lane":3,"bit_offset":0}],"read":"78563412"}`},
		{"the lane itself", []string{"--arch", "amdgpu", "--expr", "LLVM_push_lane", "--lane", "7", "--processor", "gfx1030"},
			`{"kind":"value","value":{"type":"generic","hex":"0x7"}}`},
		{"bits from the wave's entry", []string{"--arch", "amdgpu", "--processor", "gfx90a", "--reg", "EXEC=0x1",
			"--expr", "LLVM_call_frame_entry_reg EXEC; deref_size 8"},
			`{"kind":"value","value":{"type":"generic","hex":"0x1"}}`},
		{"a composite", []string{"--arch", "x86_64", "--expr", "reg0; piece 4; piece 2", "--reg", "rax=0x1122334455667788"},
			`{"kind":"location","places":[{"storage":"composite","bit_offset":0,"parts":[` +
				`{"bits":32,"places":[{"storage":"register","register":"rax","thread":"1","frame":0,"bit_offset":0}]},` +
				`{"bits":16,"places":[{"storage":"undefined"}]}]}]}`},
		{"a trace", []string{"--arch", "x86_64", "--expr", "lit1; dup", "--trace"},
			`{"kind":"value","value":{"type":"generic","hex":"0x1"},"trace":[` +
				`{"offset":0,"op":"DW_OP_lit1","stack":["0x1"]},{"offset":1,"op":"DW_OP_dup","stack":["0x1","0x1"]}]}`},

		{"names of DWARF 6", []string{"--arch", "x86_64", "--expr", "DW_OP_composite; reg0; lit2; DW_OP_offset; piece 2", "--reg", "rax=0x1122334455667788", "--read", "16"},
			`{"kind":"location","places":[{"storage":"composite","bit_offset":0,"parts":[` +
				`{"bits":16,"places":[{"storage":"register","register":"rax","thread":"1","frame":0,"bit_offset":16}]}]}],"read":"6655"}`},
		{"a branch that is not taken", []string{"--arch", "x86_64", "--expr", "lit0; bra 1000; lit7"},
			`{"kind":"value","value":{"type":"generic","hex":"0x7"}}`},

		{"a branch out of the expression", []string{"--arch", "x86_64", "--expr", "lit1; bra 1000; lit7"},
			`{"error":{"kind":"ill-formed","offset":1,"op":"DW_OP_bra"}}`},
		{"a lane beyond the lanes", []string{"--arch", "amdgpu", "--processor", "gfx90a", "--expr", "LLVM_push_lane", "--lane", "64"},
			`{"error":{"kind":"ill-formed","offset":0,"op":"DW_OP_LLVM_push_lane"}}`},
		{"an empty stack", []string{"--arch", "x86_64", "--expr", "lit1; plus"},
			`{"error":{"kind":"ill-formed","offset":1,"op":"DW_OP_plus"}}`},
		{"division by zero", []string{"--arch", "x86_64", "--expr", "lit1; lit0; div"},
			`{"error":{"kind":"evaluation","offset":2,"op":"DW_OP_div"}}`},
		{"a lane that was not given", []string{"--arch", "amdgpu", "--expr", "LLVM_push_lane"},
			`{"error":{"kind":"evaluation","offset":0,"op":"DW_OP_LLVM_push_lane"}}`},
		{"memory that was not given", []string{"--arch", "x86_64", "--expr", "lit16; deref"},
			`{"error":{"kind":"evaluation","offset":1,"op":"DW_OP_deref"}}`},
		{"a register that was not given", []string{"--arch", "x86_64", "--expr", "reg3", "--read", "64"},
			`{"error":{"kind":"evaluation","offset":0}}`},
		{"no operation of that name", []string{"--arch", "x86_64", "--expr", "DW_OP_fly"},
			`{"error":{"kind":"ill-formed","offset":0}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, evalErr := evaluated(t, c.args...)
			var got, want report.Evaluation
			if err := json.Unmarshal([]byte(found.json), &got); err != nil {
				t.Fatalf("%v\n%s\n%v", err, found.json, evalErr)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if (got.Error != nil) != (evalErr != nil) {
				t.Errorf("%s, error %v", found.json, evalErr)
			}
			if got.Error != nil {
				if got.Error.Reason == "" {
					t.Errorf("no reason in %s", found.json)
				}
				got.Error.Reason = ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestExpressionsOfSharedParts is about four levels of a thousand uses each of what is
// below.
func TestExpressionsOfSharedParts(t *testing.T) {
	expr := "regx SGPR3" + strings.Repeat("; LLVM_extend 32, 1000", 4)
	for _, args := range [][]string{{}, {"--trace"}} {
		found, err := evaluated(t, append(args, "--arch", "amdgpu", "--wave", "64", "--expr", expr)...)
		for text, want := range map[string]string{found.text: "999 parts more", found.json: `"more_parts": 999`} {
			if err != nil || len(text) > 16<<20 || !strings.Contains(text, want) {
				t.Errorf("%v: %d bytes without %s: %v", args, len(text), want, err)
			}
		}
	}
}

// A thread of a snapshot needs no PC, and no more registers than are read.
func TestExpressionsInASnapshotWithoutPC(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, content := range map[string]string{
		"snapshot.json": `{"format_version":1,"modules":[],"threads":[
			{"id":"7","arch":"x86_64","registers":{"rsp":"0x1000","rax":"0x2a"}},
			{"id":"8","arch":"x86_64"},
			{"id":"9","arch":"amdgpu","processor":"gfx90a","registers":{"EXEC":"0x5"}}],
			"memory":[{"file":"memory/0.bin","space":"global","address":"0x1008"}]}`,
		"memory/0.bin": "\x11\x22\x33\x44",
	} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, args, want string }{ // want: in the result, or the error
		{"a register", "--arch x86_64 --thread 7 --expr reg0 --read 64", `"read":"2a00000000000000"`},
		{"memory by a register", "--arch x86_64 --thread 7 --expr breg7,8 --read 32", `"read":"11223344"`},
		{"neither", "--arch x86_64 --thread 8 --expr lit5", `"address":"0x5"`},
		{"another architecture", "--arch amdgpu --thread 9 --expr regx,EXEC --read 64", `"read":"0500000000000000"`},
		{"a register that is not there", "--arch x86_64 --thread 8 --expr breg7,8", "rsp"},
		{"a CFA that no row says", "--arch x86_64 --thread 7 --expr call_frame_cfa", "CFA of a call frame: not in the evaluation context"},
		{"a caller", "--arch x86_64 --thread 7 --frame 1 --expr lit5", "no such frame: 1, the target does not say the thread's PC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := strings.Fields(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], ",", " ")
			}
			found, err := evaluated(t, append([]string{"--snapshot", path, "--kind", "location"}, args...)...)
			got := strings.Join(strings.Fields(found.json), "")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%s, expected %s", got, c.want)
			}
		})
	}
}

func TestEvaluationsWithoutMeaning(t *testing.T) {
	for _, args := range [][]string{
		{"--expr", "lit1"}, {"--arch", "x86_64"}, {"--arch", "x86_64", "--expr", "", "--kind", "thing"},
		{"--arch", "x86_64", "--expr", "", "--reg", "rsp"}, {"--arch", "x86_64", "--expr", "", "--reg", "nope=1"},
		{"--arch", "x86_64", "--expr", "", "--mem", "moon:0=00"}, {"--arch", "x86_64", "--expr", "", "--mem", "global:0=0"},
		{"--arch", "x86_64", "--expr", "", "--thread", "1"}, {"--arch", "amdgpu", "--expr", "", "--wave", "48"},
		{"--snapshot", "../../../examples/crash/server.core", "--var", "batch", "--depth", "65"},
		{"--snapshot", "../../../examples/crash/server.core", "--var", "batch", "--lane", "2147483648"}, {"--snapshot", "../../../examples/crash/server.core", "--var", "batch["}, {"--var", "batch"},
		{"--arch", "amdgpu", "--expr", "", "--processor", "gfx90a", "--wave", "32"}, {"--arch", "amdgpu", "--expr", "", "--processor", "z80"},
	} {
		if found, err := evaluated(t, args...); !errors.Is(err, ErrUsage) || found.json != "" {
			t.Errorf("%v: %s, %v", args, found.json, err)
		}
	}
}
