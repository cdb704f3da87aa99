// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/proof"
)

// generator writes functions whose code is nothing and whose call frame
// information is everything that full CFI has, in random order: for wave sizes,
// stack pointers and encodings of which no compiler at hand writes any.
type generator struct {
	lanes   uint64
	scratch bool // the stack pointer counts the bytes of a lane
	legacy  bool // opcodes of one byte
	random  *rand.Rand
	text    strings.Builder
}

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// llvm is an operation of the extension.
func (g *generator) llvm(number byte, operands ...uint64) []byte {
	b := []byte{dw.OpLLVMUser, number}
	if g.legacy {
		i := slices.IndexFunc(dw.VendorOps[:], func(o dw.VendorOp) bool { return o.Canonical == uint64(number) })
		b = []byte{dw.VendorOps[i].Legacy}
	}
	for _, o := range operands {
		b = append(b, uleb(o)...)
	}
	return b
}

func regx(n uint64) []byte { return append([]byte{dw.OpRegx}, uleb(n)...) }

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func (g *generator) escape(parts ...[]byte) {
	for i, b := range join(parts...) {
		if i == 0 {
			g.text.WriteString(" .cfi_escape ")
		} else {
			g.text.WriteByte(',')
		}
		fmt.Fprintf(&g.text, "0x%x", b)
	}
	g.text.WriteByte('\n')
}

// rule is DW_CFA_expression, or with another kind DW_CFA_val_expression.
func (g *generator) rule(kind byte, reg uint64, expr ...[]byte) {
	e := join(expr...)
	g.escape([]byte{kind}, uleb(reg), uleb(uint64(len(e))), e)
}

func (g *generator) exec() uint64 {
	if g.lanes == 32 {
		return 1
	}
	return 17
}

func (g *generator) vector() uint64 {
	if g.lanes == 32 {
		return [...]uint64{1536, 1792, 3584}[g.random.IntN(3)] + g.random.Uint64N(8)
	}
	return [...]uint64{2560, 2600, 2808}[g.random.IntN(3)] + g.random.Uint64N(8)
}

func (g *generator) accumulator() uint64 {
	if g.lanes == 32 {
		return 2048 + g.random.Uint64N(8)
	}
	return 3072 + g.random.Uint64N(8)
}

// scalar is one that is neither a stack pointer nor where a return address is
// at first.
func (g *generator) scalar() uint64 {
	return [...]uint64{32, 72, 1088, 1121}[g.random.IntN(4)] + g.random.Uint64N(8)
}

// entryExec is the lanes that were active on entry.
func (g *generator) entryExec() []byte {
	return join(g.llvm(dw.UserCallFrameEntryReg, g.exec()), []byte{dw.OpDerefSize, byte(g.lanes / 8)})
}

func (g *generator) offset() uint64 { return g.random.Uint64N(64) * g.lanes * 4 }

// in has a register in one of a higher number: rules that lead to themselves are ill-formed.
func (g *generator) in(register, other uint64) {
	if other > register {
		g.escape([]byte{dw.CFARegister}, uleb(register), uleb(other))
	} else {
		g.escape([]byte{dw.CFASameValue}, uleb(register))
	}
}

// step is a random change of the rules.
func (g *generator) step() {
	lane := g.random.Uint64N(g.lanes)
	other := g.random.Uint64N(g.lanes)
	v, u, s := g.vector(), g.vector(), g.scalar()
	selected := join(g.entryExec(), g.llvm(dw.UserSelectBitPiece, 32, g.lanes))
	switch g.random.IntN(20) {
	case 0: // a return address in lanes
		g.rule(dw.CFAExpression, 16, regx(v), []byte{dw.OpBitPiece, 32}, uleb(32*lane), regx(v), []byte{dw.OpBitPiece, 32}, uleb(32*other))
	case 1: // a return address in lanes of two registers, with an end
		g.rule(dw.CFAExpression, 16, regx(v), g.llvm(dw.UserOffsetUconst, 4*lane), []byte{dw.OpPiece, 4}, regx(u), g.llvm(dw.UserOffsetUconst, 4*other), []byte{dw.OpPiece, 4}, g.llvm(dw.UserPieceEnd))
	case 2: // a return address in memory
		g.escape([]byte{dw.CFAOffsetExtended, 16}, uleb(g.random.Uint64N(1<<12)))
	case 3: // a return address in scalars
		g.rule(dw.CFAExpression, 16, regx(s), []byte{dw.OpPiece, 4}, regx(s^1), []byte{dw.OpPiece, 4})
	case 4, 5: // a scalar in a lane
		g.rule(dw.CFAExpression, s, regx(v), g.llvm(dw.UserOffsetUconst, 4*lane))
	case 6: // a scalar in another
		g.in(s, g.scalar())
	case 7: // a scalar in memory
		g.escape([]byte{dw.CFAOffsetExtended}, uleb(s), uleb(g.random.Uint64N(1<<12)))
	case 8: // lost
		g.escape([]byte{dw.CFAUndefined}, uleb([...]uint64{s, v, g.accumulator()}[g.random.IntN(3)]))
	case 9: // not lost any more
		g.escape([]byte{dw.CFASameValue}, uleb([...]uint64{s, v}[g.random.IntN(2)]))
	case 10, 11, 12: // a vector register in memory, for the lanes that were active
		g.rule(dw.CFAExpression, v, regx(v), []byte{dw.OpSwap}, g.llvm(dw.UserOffsetUconst, g.offset()), selected)
	case 13: // in another register
		g.rule(dw.CFAExpression, v, regx(v), regx(g.accumulator()), selected)
	case 14: // in memory, all lanes
		g.escape([]byte{dw.CFAOffsetExtended}, uleb(v), uleb(g.random.Uint64N(64)*g.lanes))
	case 15: // in another one
		g.in(v, g.vector())
	case 16: // a mask of lanes in scalars
		if g.lanes == 32 {
			g.escape([]byte{dw.CFARegister}, uleb(1), uleb(g.scalar()))
			return
		}
		g.rule(dw.CFAExpression, 17, regx(s), []byte{dw.OpPiece, 4}, regx(s^1), []byte{dw.OpPiece, 4})
	case 17: // the same scalar in all lanes
		g.rule(dw.CFAExpression, v, regx(s), g.llvm(dw.UserExtend, 32, g.lanes))
	case 18: // lanes that were not active are lost
		g.rule(dw.CFAExpression, v, g.llvm(dw.UserUndefined), []byte{dw.OpSwap}, g.llvm(dw.UserOffsetUconst, g.offset()), selected)
	case 19: // by a number of bits; the frame pointer in a register
		if g.random.IntN(2) == 0 {
			g.rule(dw.CFAExpression, s, regx(v), []byte{dw.OpConstu}, uleb(32*lane), g.llvm(dw.UserBitOffset))
			return
		}
		g.in(65, g.scalar())
	}
}

// cfa defines the CFA by a register.
func (g *generator) cfa(reg uint64) {
	if !g.scratch {
		g.escape([]byte{dw.CFALLVMDefAspaceCFA}, uleb(reg), uleb(g.random.Uint64N(4)*256), []byte{6})
		return
	}
	shift := byte(5)
	if g.lanes == 64 {
		shift = 6
	}
	e := join(regx(reg), []byte{dw.OpDerefSize, 4, dw.OpLit0 + shift, dw.OpShl, dw.OpLit0 + 6}, g.llvm(dw.UserFormAspaceAddress))
	g.escape([]byte{dw.CFADefCFAExpression}, uleb(uint64(len(e))), e)
}

// object writes functions and a kernel, and assembles them.
func (g *generator) object(t *testing.T, name, processor string, functions, steps int) string {
	t.Helper()
	g.text.WriteString(" .text\n .cfi_sections .debug_frame\n")
	for i := range functions {
		fmt.Fprintf(&g.text, " .globl f%d\n .type f%d,@function\nf%d:\n .cfi_startproc\n", i, i, i)
		g.cfa(64)
		g.rule(dw.CFAExpression, 16, regx(62), []byte{dw.OpPiece, 4}, regx(63), []byte{dw.OpPiece, 4})
		g.text.WriteString(" s_nop 0\n")
		if i%2 == 1 { // it has a frame pointer, and keeps its caller's
			g.rule(dw.CFAExpression, 65, regx(g.vector()), g.llvm(dw.UserOffsetUconst, 4*g.random.Uint64N(g.lanes)))
			g.cfa(65)
		}
		for range steps {
			for range 1 + g.random.IntN(3) {
				g.step()
			}
			g.text.WriteString(" s_nop 0\n")
		}
		fmt.Fprintf(&g.text, " .cfi_endproc\n .size f%d,.-f%d\n", i, i)
	}
	g.text.WriteString(" .globl k\n .type k,@function\nk:\n .cfi_startproc\n")
	g.escape([]byte{dw.CFADefCFAExpression}, uleb(uint64(2+len(g.llvm(dw.UserFormAspaceAddress)))), []byte{dw.OpLit0, dw.OpLit0 + 6}, g.llvm(dw.UserFormAspaceAddress))
	g.text.WriteString(" .cfi_undefined 16\n s_nop 0\n s_nop 0\n s_endpgm\n .cfi_endproc\n .size k,.-k\n")

	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("llvm-mc-22", "-triple", "amdgcn-amd-amdhsa", "-mcpu="+processor, "-filetype=obj", "-o", path, "-")
	cmd.Stdin = strings.NewReader(g.text.String())
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return path
}

// generated is an object for a processor in both encodings. The rows are those
// that llvm-dwarfdump prints of the published one: it does not know the other.
func generated(t *testing.T, processor string, lanes, seed uint64, scratch bool) (user, legacy *waveCode) {
	t.Helper()
	needLLVM(t)
	functions, steps := 6, 16
	if proof.IsRequested() {
		functions, steps = 60, 40
	}
	assemble := func(old bool) string {
		g := &generator{lanes: lanes, scratch: scratch, legacy: old, random: rand.New(rand.NewPCG(seed, lanes))}
		name := fmt.Sprintf("%s.wave%d.user.o", processor, lanes)
		if old {
			name = strings.Replace(name, "user", "legacy", 1)
		}
		return g.object(t, name, processor, functions, steps)
	}
	c := waveCode{path: assemble(false), processor: processor, lanes: lanes, scratch: scratch}
	c.fdes = listRows(t, c.path)
	for _, rows := range c.fdes {
		for pc := rows[0].start + 4; pc <= rows[len(rows)-1].end; pc += 4 {
			c.calls = append(c.calls, pc)
		}
	}
	other := c
	other.path = assemble(true)
	return &c, &other
}
