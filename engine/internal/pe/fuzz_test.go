// SPDX-License-Identifier: Apache-2.0

package pe

import "testing"

// useAll asks a file for all that it has, within bounds.
func useAll(f *File) {
	_, _ = f.Identity()
	_, _ = f.Exports()
	for _, s := range f.Sections() {
		_, _ = s.Data()
	}
	_, _ = f.Bytes(f.Entry(), 16)
	_ = f.ForeignCode(f.Entry())
	_, _ = f.CodeEnd(f.Entry())
	_ = f.Symbols(func(s *Symbol) {
		if s.Section != nil {
			_, _ = f.CodeEnd(s.Address())
		}
	})
	functions, rows := 0, 0
	_ = f.Functions(func(fn Function) bool {
		_, _ = f.UnwindInfo(fn)
		_ = f.Rows(fn, func(r *Row) bool {
			if r.Start >= r.End {
				panic("an empty row")
			}
			rows++
			return rows < 10000
		})
		_ = f.RowAt(fn.Start, new(Row))
		functions++
		return functions < 1000
	})
	_ = f.Problems()
}

func seeds() []*maker {
	withFunction := &maker{code: []byte("\x53\x56\x48\x83\xec\x28\x90\x48\x83\xc4\x28\x5e\x5b\xc3\x90")}
	withFunction.functions(madeCode, madeCode+15, withFunction.put(info(1, 6, 0, code(6, AllocSmall, 4), code(2, PushNonvol, rsi), code(1, PushNonvol, rbx))...))
	return []*maker{{}, withFunction, withExports(), withDebug("RSDS")}
}

// FuzzPE reads files.
func FuzzPE(f *testing.F) {
	for _, m := range seeds() {
		f.Add(m.file())
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		if file, err := New("fuzz", data); err == nil {
			useAll(file)
		}
	})
}

// FuzzUnwind reads unwind information and code of one function.
func FuzzUnwind(f *testing.F) {
	f.Add(info(1, 6, 0, code(6, AllocSmall, 4), code(1, PushNonvol, rbx)), []byte("\x53\x48\x83\xec\x28\x48\x83\xc4\x28\x5b\xc3"))
	f.Add(info(2, 1, 0, code(2, epilogOperation, 1), code(0, epilogOperation, 0), code(1, PushNonvol, rbx)), []byte("\x53\x90\x5b\xc3"))
	f.Add(info(1, 0, 0x25, code(0, SetFPReg, 0), code(0, PushMachFrame, 1)), []byte("\xc5\xf8\x77\xc3"))
	f.Add(info(1|IsChained<<3, 0, 5, code(0, SaveXMM128Far, 6), words(16)), []byte("\x62\xf1\x7c\x48\x28\x40\x01"))
	f.Fuzz(func(t *testing.T, information, text []byte) {
		if len(text) == 0 || len(text) > 0x1000 || len(information) > 0x1000 {
			return
		}
		m := &maker{code: text}
		m.functions(madeCode, madeCode+uint32(len(text)), madeData+12)
		m.put(information...)
		file := m.open(t)
		at := uint64(madeBase + madeCode)
		fn, ok, err := file.FunctionAt(at)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := file.Rows(fn, func(r *Row) bool {
			if r.Start != at || r.End <= at {
				t.Fatalf("row %#x to %#x, expected it to begin at %#x", r.Start, r.End, at)
			}
			at = r.End
			return true
		}); err == nil && at != fn.End {
			t.Fatalf("rows end at %#x, expected %#x", at, fn.End)
		}
		useAll(file)
	})
}
