// SPDX-License-Identifier: Apache-2.0

package genasm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program is the assembly of a kernel on a platform, with a stack.
func program(t *testing.T, platform string, lines ...string) *Assembly {
	t.Helper()
	a, err := read(t, platform, lines...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func read(t *testing.T, platform string, lines ...string) (*Assembly, error) {
	t.Helper()
	header := []string{
		"//.kernel k", "//.platform " + platform, "//.thread_config numGRF=128, numAcc=2",
		"//.declare be_fp (69)  rf=r size=4 type=ud align=2 words (r125.3)",
		"//.declare be_sp (70)  rf=r size=4 type=ud align=2 words (r125.2)",
		"_main:",
	}
	path := filepath.Join(t.TempDir(), "k_simd8_entry_0001.asm")
	if err := os.WriteFile(path, []byte(strings.Join(append(header, lines...), "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadAssembly(path)
}

const end = "(W)     send (8|M0)  null r112 0x27 0x02000010 {EOT} // end of thread"

func dword(b []byte, register, size, n int) uint32 {
	return binary.LittleEndian.Uint32(b[register*size+4*n:])
}

// An instruction that changes what frames are found by, and is not known, is an
// error; anywhere else it leaves random bytes.
func TestWhatIsNotKnownMustNotTouchTheStack(t *testing.T) {
	for _, c := range []struct {
		platform, line string
		err            string // part of it; "" for none
	}{
		{"SKL", "(W)     mul (1|M0)  r125.3<1>:ud  r125.3<0;1,0>:ud  0x2:ud", "changes what frames are found by"},
		{"SKL", "(W)     mul (1|M0)  r126.2<1>:ud  r125.3<0;1,0>:ud  0x2:ud", "changes what frames are found by"},
		{"SKL", "(W)     add (1|M0)  r125.3<1>:ud  acc0.0<0;1,0>:ud  0x2:ud", "changes what frames are found by"},
		{"SKL", "(W)     add (1|M0)  r125.3<1>:f   r125.3<0;1,0>:f   r2.0<0;1,0>:f", "changes what frames are found by"},
		{"SKL", "(W)     send (8|M0) r125  r2  0xC  0x041401FF", "changes what frames are found by"},
		{"SKL", "(W)     send (8|M0) r124  r2  0xC  0x042401FF", "changes what frames are found by"},
		{"DG2", "(W)     load.ugm.d32x8t.a64 (1|M0)  r124:2  [r2:1]", "changes what frames are found by"},
		{"DG2", "(W)     mul (1|M0)  a0.2<1>:ud  r126.7<0;1,0>:ud  0x2:ud", "changes what frames are found by"},
		{"SKL", "(W)     mov (1|M0)  r[a0.0]<1>:ud  0x2:ud", "destination is not known"},
		{"SKL", "(W)     mov (1|M0)  r125.3<1>:zz  0x2:ud", `the type "zz" is not known`},
		{"SKL", "(W)     frob", "is not known here"},
		{"SKL", "(W&f2.0) mov (1|M0)  r1.0<1>:ud  0x2:ud", "the predicate f2.0"},
		{"SKL", "(W)     sends (8|M0) null:ud  r126  r125  0x4A  a0.0", "length of its answer"},
		{"SKL", "        ret (8|M0)  r125.0:ud", "returns from a kernel"},
		{"SKL", "(W)     jmpi _nowhere", "no label _nowhere"},
		{"SKL", "(W)     mul (1|M0)  r124.0<1>:ud  r125.3<0;1,0>:ud  0x2:ud", ""},
		{"SKL", "(W)     send (8|M0) r124  r2  0xC  0x041401FF", ""},
		{"SKL", "(W)     add (1|M0)  acc0.0<1>:ud  r125.3<0;1,0>:ud  0x2:ud", ""},
		{"DG2", "(W)     mul (1|M0)  a0.0<1>:uw  r126.7<0;1,0>:uw  0x2:uw", ""},
	} {
		m := New(program(t, c.platform, c.line, end), 0, 1, rand.New(rand.NewPCG(1, 1)))
		err := m.Run(func() bool { return true })
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, expected %q", c.line, err, c.err)
		}
	}
}

func TestMovesAndSumsAreExecuted(t *testing.T) {
	m := New(program(t, "SKL",
		"(W)     mov (4|M0)  r59.4<1>:ud  r125.0<4;4,1>:ud  {Compacted}",
		"(W)     mov (1|M0)  r125.3<1>:ud  0x40:ud",
		"(W)     add (1|M0)  r125.2<1>:ud  r125.3<0;1,0>:ud  -16:w",
		"(W)     mov (2|M0)  r60.0<2>:ud  r125.2<2;2,1>:ud",
		"(W)     mov (1|M0)  r61.0<1>:uq  0xF00000000:uq",
		"(W)     or (1|M0)   r61.0<1>:uq  r61.0<0;1,0>:uq  0x3:uw",
		"(W)     shr (1|M0)  r61.2<1>:ud  r125.3<0;1,0>:ud  0x4:ud",
		"(W)     and (1|M0)  r61.3<1>:ud  r125.3<0;1,0>:ud  ~r125.3<0;1,0>:ud",
		end,
	), 0, 1, rand.New(rand.NewPCG(1, 1)))
	var before []byte
	if err := m.Run(func() bool {
		if before == nil {
			before = append(before, m.GRF...)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		register, n int
		want        uint32
	}{
		{59, 4, dword(before, 125, 32, 0)},
		{59, 7, dword(before, 125, 32, 3)},
		{125, 3, 0x40},
		{125, 2, 0x30},
		{60, 0, 0x30},
		{60, 1, dword(before, 60, 32, 1)}, // between two elements
		{60, 2, 0x40},
		{61, 0, 3},
		{61, 1, 0xf},
		{61, 2, 4},
		{61, 3, 0},
	} {
		if got := dword(m.GRF, c.register, 32, c.n); got != c.want {
			t.Errorf("r%d.%d is %#x, expected %#x", c.register, c.n, got, c.want)
		}
	}
}

// A block goes to where the header, or the surface and the address, say.
func TestBlocksOfScratchMemory(t *testing.T) {
	for _, c := range []struct {
		platform string
		size     int
		lines    []string
	}{
		{"SKL", 64, []string{
			"(W)     mov (8|M0)  r126.0<1>:ud  r0.0<8;8,1>:ud",
			"(W)     mov (1|M0)  r126.2<1>:ud  0x4:ud",
			"(W)     sends (16|M0)  null:uw  r126  r60  0x8A  0x020A03FF",
			"(W)     send (16|M0)  r70:uw  r126  0xA  0x022803FF",
		}},
		{"TGLLP", 128, []string{
			"(W)     mov (8|M0)  r126.0<1>:f  r0.0<8;8,1>:f",
			"(W)     mov (1|M0)  r126.2<1>:ud  0x4:ud",
			"(W)     send.dc0 (16|M16)  null  r126  r60  0x100  0x020A04FF",
			"(W)     send.dc0 (16|M16)  r70  r126  null  0x0  0x024804FF",
		}},
		{"PVC", 128, []string{
			"(W)     and (1|M0)  r126.7<1>:ud  r0.5<0;1,0>:ud  0xFFFFFC00:ud",
			"(W)     shr (1|M0)  a0.2<1>:ud  r126.7<0;1,0>:ud  0x4:ud",
			"(W)     mov (1|M0)  r126.0<1>:ud  0x40:ud",
			"(W)     store.ugm.d32x32t.a32 (1|M0)  ss[a0.2][r126:1] r60:2 {ExBSO,A@1}",
			"(W)     load.ugm.d32x32t.a32 (1|M0)  r70:2  ss[a0.2][r126:1] {ExBSO,A@1}",
		}},
	} {
		m := New(program(t, c.platform, append(c.lines, end)...), 0, 1, rand.New(rand.NewPCG(1, 1)))
		before := append([]byte(nil), m.Scratch...)
		if err := m.Run(func() bool { return true }); err != nil {
			t.Fatal(err)
		}
		saved := Span{60 * m.RegisterSize, c.size}.Bytes(m.GRF)
		if got := string(m.Scratch[0x40:][:c.size]); got != string(saved) {
			t.Errorf("%s: %x is in memory, expected %x", c.platform, got, saved)
		}
		if got := (Span{70 * m.RegisterSize, c.size}).Bytes(m.GRF); string(got) != string(saved) {
			t.Errorf("%s: %x was read, expected %x", c.platform, got, saved)
		}
		copy(before[0x40:], saved)
		if string(before) != string(m.Scratch) {
			t.Errorf("%s: more was written", c.platform)
		}
		// Without the address of scratch memory in its place.
		m = New(program(t, c.platform, append(c.lines[1:], end)...), 0, 1, rand.New(rand.NewPCG(1, 1)))
		if err := m.Run(func() bool { return true }); err == nil || !strings.Contains(err.Error(), "scratch memory is at") {
			t.Errorf("%s: %v", c.platform, err)
		}
	}
}

func TestAFunctionMustReturnWithWhatItKeeps(t *testing.T) {
	for _, c := range []struct {
		line, err string
	}{
		{"(W)     mov (1|M0)  r59.0<1>:ud  0x0:ud", ""},
		{"(W)     mov (1|M0)  r60.0<1>:ud  0x0:ud", "byte 1920 of the registers"},
		{"(W)     mov (1|M0)  r124.7<1>:ud  0x0:ud", "byte 1920 of the registers"},
		{"(W)     mov (1|M0)  r125.2<1>:ud  0x0:ud", "byte 4008 of the registers"},
		{"(W)     mov (1|M0)  r125.3<1>:ud  0x0:ud", "byte 4012 of the registers"},
		{"(W)     mov (1|M0)  r125.0<1>:ud  0x0:ud", "returns to 0x0 instead of 0x1010"},
		{"(W)     mov (1|M0)  r125.1<1>:ud  0x0:ud", "returns to 0x1010 instead of 0x1010"},
		{"(W)     mov (1|M0)  r125.4<1>:ud  0x0:ud", ""},
	} {
		m := New(program(t, "SKL", "        call (8|M0)  r125.0:ud  L_f0_f", end, "L_f0_f:", c.line, "        ret (8|M0)  r125.0:ud"),
			0x1000, 1, rand.New(rand.NewPCG(1, 1)))
		depth, function := 0, ""
		err := m.Run(func() bool {
			if len(m.Calls) > depth {
				depth, function = len(m.Calls), fmt.Sprintf("%s at %#x returns to %#x", m.Next().Function, m.IP(), m.Calls[0].ReturnIP)
			}
			return true
		})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, expected %q", c.line, err, c.err)
		}
		if want := "f at 0x1020 returns to 0x1010"; depth != 1 || function != want {
			t.Errorf("%d calls, %s, expected %s", depth, function, want)
		}
	}
}

func TestAssemblyThatIsNoneIsAnError(t *testing.T) {
	for _, c := range []struct {
		platform, line, err string
	}{
		{"XYZ", end, "platform"},
		{"SKL", "", "0 instructions"},
		{"SKL", "L16:", "the label L16 is at 0"},
		{"SKL", "(W)", "no operation"},
		{"SKL", "        call (8|M0)  r125.0:ud  L_f0_f", "no label L_f0_f"},
	} {
		if _, err := read(t, c.platform, c.line); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, expected %q", c.line, err, c.err)
		}
	}
}
