// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func writeFile(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openMap(t testing.TB, text string) *PerfMap {
	t.Helper()
	p, err := OpenPerfMap(writeFile(t, []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestPerfMap(t *testing.T) {
	p := openMap(t, "2000 100 second with spaces\n1000 0x80 first\nzz 1 bad\n3000 0 empty\n4000 10\n2080 10 LazyCompile:~newer\r\nffffffffffffffff 10 wraps\n5000 10 not do")
	for _, c := range []struct {
		address uint64
		name    string
		start   uint64
	}{
		{0xfff, "", 0}, {0x1000, "first", 0x1000}, {0x107f, "first", 0x1000}, {0x1080, "", 0},
		{0x2000, "second with spaces", 0x2000}, {0x207f, "second with spaces", 0x2000}, {0x2080, "LazyCompile:~newer", 0x2080},
		{0x2090, "second with spaces", 0x2000}, {0x20ff, "second with spaces", 0x2000}, {0x2100, "", 0}, {0x3000, "", 0}, {0x5000, "", 0},
	} {
		name, start, _, ok := p.Find(c.address)
		if name != c.name || ok != (c.name != "") || start != c.start {
			t.Errorf("%#x: %q from %#x, expected %q from %#x", c.address, name, start, c.name, c.start)
		}
	}
	for _, words := range [][]string{{"line 3", `"zz"`}, {"line 5", "name"}, {"line 7", "beyond"}, {"line 8", "does not end"}} {
		mustHaveProblem(t, p.Problems(), words...)
	}
	if len(p.Problems()) != 4 {
		t.Errorf("problems %q", p.Problems())
	}
	if empty := openMap(t, ""); empty.Len() != 0 {
		t.Error("an empty file has functions")
	}
}

// Each address is of the last line that has it.
func TestPerfMapIsThatOfEachAddress(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		var text bytes.Buffer
		var owner [300]string
		for i := range 60 {
			start, size := random.IntN(250), random.IntN(50)
			fmt.Fprintf(&text, "%x %x f%d\n", start, size, i)
			for a := start; a < start+size; a++ {
				owner[a] = fmt.Sprintf("f%d", i)
			}
		}
		p := openMap(t, text.String())
		for a, want := range owner {
			if got, _, _, _ := p.Find(uint64(a)); got != want {
				t.Fatalf("%#x is %q, expected %q in\n%s", a, got, want, &text)
			}
		}
	}
}

// jitWriter writes a jitdump.
type jitWriter struct {
	*builder
	out bytes.Buffer
}

func newJIT(big bool) *jitWriter {
	w := &jitWriter{builder: newBuilder(big)}
	w.out.Write(w.pack(jitMagic, uint32(1), uint32(40), uint32(62), uint32(0), uint32(77), uint64(1000), uint64(0)))
	return w
}

func (w *jitWriter) put(id uint32, time uint64, values ...any) {
	body := w.pack(values...)
	w.out.Write(w.pack(id, uint32(16+len(body)), time))
	w.out.Write(body)
}

func (w *jitWriter) load(time, address, index uint64, name string, code []byte) {
	w.put(jitCodeLoad, time, uint32(77), uint32(78), address, address, uint64(len(code)), index, []byte(name+"\x00"), code)
}

func jitDump(big bool) []byte {
	w := newJIT(big)
	w.put(jitCodeDebugInfo, 1, uint64(0x1000), uint64(2), uint64(0x1000), uint32(10), uint32(3), []byte("a.js\x00"), uint64(0x1004), uint32(11), uint32(0), []byte("\xff\x00"))
	w.put(jitCodeUnwinding, 1, uint64(12), uint64(4), uint64(0), []byte("HDR!EH_FRAME"))
	w.load(10, 0x1000, 1, "first", []byte("12345678"))
	w.load(20, 0x2000, 2, "second", []byte("abcd"))
	w.load(30, 0x1004, 3, "over", []byte("xy"))
	w.put(jitCodeMove, 40, uint32(77), uint32(78), uint64(0x3000), uint64(0x1000), uint64(0x3000), uint64(8), uint64(1))
	w.load(45, 0x1000, 4, "reused", []byte("abcd"))
	w.put(99, 50, uint64(0))
	w.put(jitCodeClose, 60)
	return w.out.Bytes()
}

func openJIT(t testing.TB, data []byte) *JITDump {
	t.Helper()
	j, err := OpenJITDump(writeFile(t, data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func TestJITDump(t *testing.T) {
	for _, big := range []bool{false, true} {
		j := openJIT(t, jitDump(big))
		if p := j.Problems(); len(p) > 0 || j.Machine != 62 || j.PID != 77 || j.Created != 1000 || j.HasArchTimestamps || len(j.Functions) != 5 {
			t.Fatalf("big endian %v: %q %+v", big, p, j)
		}
		f := j.Functions[0]
		if f.PID != 77 || f.TID != 78 || string(f.Code) != "12345678" || string(f.EHFrameHdr) != "HDR!" || string(f.EHFrame) != "EH_FRAME" ||
			fmt.Sprint(f.Lines) != "[{4096 10 3 a.js} {4100 11 0 a.js}]" {
			t.Errorf("function %+v", f)
		}
		if f := j.Functions[1]; f.EHFrame != nil || f.Lines != nil {
			t.Errorf("function %+v has what is another's", f)
		}
		if f := j.Functions[3]; f.Name != "first" || fmt.Sprint(f.Lines) != "[{12288 10 3 a.js} {12292 11 0 a.js}]" {
			t.Errorf("moved function %+v", f)
		}
		if f := j.Functions[4]; f.Name != "reused" || f.Lines != nil {
			t.Errorf("function %+v has the lines of what was there before", f)
		}
		for _, c := range []struct {
			time, address uint64
			name          string
		}{
			{9, 0x1000, ""}, {10, 0x1000, "first"}, {29, 0x1004, "first"}, {30, 0x1004, "over"}, {30, 0x1006, "first"}, {30, 0x1008, ""},
			{39, 0x3000, ""}, {40, 0x3000, "first"}, {50, 0x2003, "second"}, {50, 0x2004, ""}, {50, 0, ""},
		} {
			got := ""
			if f, _, _ := j.Find(c.time, c.address); f != nil {
				got = f.Name
			}
			if got != c.name {
				t.Errorf("%#x at %d is %q, expected %q", c.address, c.time, got, c.name)
			}
		}
	}
}

// Code whose size is more than its record has ends where the record does; where the file is cut
// the record says how large the code is.
func TestJITFunctionEndsWhereItsCodeDoes(t *testing.T) {
	w := newJIT(false)
	w.put(jitCodeLoad, 1, uint32(1), uint32(1), uint64(0x1000), uint64(0x1000), uint64(400), uint64(1), []byte("beyond\x00abcd"))
	w.put(jitCodeLoad, 2, uint32(1), uint32(1), uint64(0x2000), uint64(0x2000), uint64(400), uint64(2), []byte("without code\x00"))
	w.load(3, 0x3000, 3, "cut", []byte("abcdefgh"))
	for _, c := range []struct {
		missing, code, problems int
		size                    uint64 // of the last function
	}{{0, 8, 1, 8}, {3, 5, 2, 8}, {8, 0, 2, 8}, {9, 0, 2, 400}} {
		data := w.out.Bytes()
		j := openJIT(t, data[:len(data)-c.missing])
		mustHaveProblem(t, j.Problems(), "offset 0x28", "beyond its record", "after 4")
		if len(j.Problems()) != c.problems {
			t.Errorf("%d bytes are missing: %q", c.missing, j.Problems())
		}
		if f := &j.Functions[0]; f.Size != 4 || string(f.Code) != "abcd" {
			t.Errorf("function %+v", f)
		}
		if f := &j.Functions[1]; f.Size != 400 || f.Code != nil {
			t.Errorf("function %+v", f)
		}
		if f := &j.Functions[len(j.Functions)-1]; f.Size != c.size || len(f.Code) != c.code {
			t.Errorf("%d bytes are missing: function %+v", c.missing, f)
		}
	}
}

// Each address is at each time of the function that was made last by then, and a map of the same
// functions says the same of the last time.
func TestJITDumpIsThatOfEachAddressAndTime(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		w := newJIT(false)
		var text bytes.Buffer
		owner, starts := [12][300]string{}, map[string]uint64{"": 0}
		for i := range 60 {
			start, time, name := random.IntN(250), uint64(1+i/6), fmt.Sprintf("f%d", i)
			code := make([]byte, random.IntN(50))
			w.load(time, uint64(start), uint64(i), name, code)
			fmt.Fprintf(&text, "%x %x %s\n", start, len(code), name)
			starts[name] = uint64(start)
			for at := time; at < 12; at++ {
				for a := range code {
					owner[at][start+a] = name
				}
			}
		}
		j, p := openJIT(t, w.out.Bytes()), openMap(t, text.String())
		for time := range uint64(12) {
			for a, want := range owner[time] {
				got := ""
				f, start, end := j.Find(time, uint64(a))
				if f != nil {
					got = f.Name
				}
				if got != want {
					t.Fatalf("%#x at %d is %q, expected %q in\n%s", a, time, got, want, &text)
				}
				for b := start; b < end; b++ {
					if owner[time][b] != want {
						t.Fatalf("%#x to %#x at %d are said to be %q, and %#x is %q in\n%s", start, end, time, want, b, owner[time][b], &text)
					}
				}
				if f != nil && (start > 0 && start > f.Address && owner[time][start-1] == want || end < f.Address+f.Size && owner[time][end] == want) {
					t.Fatalf("%#x to %#x at %d are not all around %#x in\n%s", start, end, time, a, &text)
				}
			}
		}
		for a, want := range owner[11] {
			if got, start, _, _ := p.Find(uint64(a)); got != want || start != starts[want] {
				t.Fatalf("%#x is %q from %#x in the map, expected %q from %#x", a, got, start, want, starts[want])
			}
		}
	}
}

func TestDamagedJITDump(t *testing.T) {
	data := jitDump(false)
	before := 0
	for size := range data {
		j, err := OpenJITDump(writeFile(t, data[:size]))
		if err != nil {
			if !errors.Is(err, ErrNotJITDump) {
				t.Fatal(err)
			}
			continue
		}
		if len(j.Functions) < before {
			t.Errorf("%d bytes: %d functions, %d before", size, len(j.Functions), before)
		}
		before = len(j.Functions)
		j.Close()
	}
	if before != 5 {
		t.Errorf("%d functions at last", before)
	}
	w := newJIT(false)
	w.put(jitCodeLoad, 1, uint32(1), uint32(1), ^uint64(0), ^uint64(0), uint64(4), uint64(1), []byte("wraps\x00abcd"))
	w.put(jitCodeLoad, 1, uint32(1), uint32(1), uint64(0), uint64(0), uint64(400), uint64(1), []byte("beyond\x00abcd"))
	w.put(jitCodeLoad, 1, uint32(1), uint32(1), uint64(0), uint64(0), uint64(400), uint64(1), []byte("endless"))
	w.put(jitCodeDebugInfo, 1, uint64(1), ^uint64(0)>>3)
	w.put(jitCodeUnwinding, 1, uint64(4), uint64(8), uint64(0), []byte("1234"))
	w.put(jitCodeMove, 1, uint32(1), uint32(1), uint64(1), uint64(1), uint64(1), uint64(1), uint64(9))
	w.load(5, 0x1000, 1, "good", []byte("abcd"))
	j := openJIT(t, w.out.Bytes())
	for _, word := range []string{"last address", "beyond its record", "does not end", "lines in", "unwind information", "not loaded"} {
		mustHaveProblem(t, j.Problems(), "offset", word)
	}
	if len(j.Functions) != 2 { // beyond and good
		t.Errorf("functions %+v", j.Functions)
	}
	if _, err := OpenJITDump(writeFile(t, []byte("JITD"))); !errors.Is(err, ErrNotJITDump) {
		t.Errorf("error %v", err)
	}
}
