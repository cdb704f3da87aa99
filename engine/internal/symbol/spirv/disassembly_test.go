// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// compilation keeps what compilers made of testdata.
var compilation map[string][]byte

// compiled are modules that compilers make of testdata, by name.
func compiled(t testing.TB) map[string][]byte {
	t.Helper()
	if compilation != nil {
		return maps.Clone(compilation)
	}
	dir := t.TempDir()
	list := map[string][]byte{}
	for _, c := range []struct{ name, std string }{{"kernel.cl", "CL2.0"}, {"calls.cl", "CL2.0"}, {"kernel.clcpp", "clc++2021"}, {"templates.clcpp", "clc++2021"}} {
		for _, level := range []string{"-O0", "-O1"} {
			if c.name == "kernel.cl" && level == "-O1" {
				continue // llvm-spirv 15 stops at an operation of its expressions
			}
			// The folder must not be part of what is compiled.
			bitcode := filepath.Join(dir, "module.bc")
			oracle.Run(t, "clang-15", "-x", "cl", "-cl-std="+c.std, "-target", "spir64", "-g", level, "-Xclang", "-finclude-default-header",
				"-ffile-prefix-map="+mustAbs(t, "testdata")+"=/src", "-emit-llvm", "-c", mustAbs(t, filepath.Join("testdata", c.name)), "-o", bitcode)
			for _, version := range []string{"legacy", "ocl-100"} {
				out := filepath.Join(dir, "module.spv")
				oracle.Run(t, "llvm-spirv-15", "--spirv-debug-info-version="+version, bitcode, "-o", out)
				list[c.name+level+"."+version] = read(t, out)
			}
		}
		if strings.HasSuffix(c.name, ".cl") {
			out := filepath.Join(dir, "module.spv")
			oracle.Run(t, "clang-22", "-x", "cl", "-cl-std="+c.std, "-target", "spirv64", "-g", "-O0", "-mllvm", "--spirv-ext=+SPV_KHR_non_semantic_info",
				"-mllvm", "--spv-emit-nonsemantic-debug-info", "-c", mustAbs(t, filepath.Join("testdata", c.name)), "-o", out)
			list[c.name+"-O0.clang-22"] = read(t, out)
		}
	}
	for _, name := range []string{"shader.comp", "calls.comp"} {
		out := filepath.Join(dir, "module.spv")
		oracle.Run(t, "glslangValidator", "-V", "-gVS", filepath.Join("testdata", name), "-o", out)
		list[name] = read(t, out)
		oracle.Run(t, "glslangValidator", "-V", "-g", filepath.Join("testdata", name), "-o", out)
		list[name+".lines"] = read(t, out)
	}
	compilation = maps.Clone(list)
	return list
}

func mustAbs(t testing.TB, path string) string {
	t.Helper()
	p, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// modules are those of testdata, of the corpus and of compilers.
func modules(t testing.TB) map[string][]byte {
	t.Helper()
	list := compiled(t)
	for _, path := range oracle.Beside(t, "corpus/spirv/*.spv") {
		list["corpus/"+filepath.Base(path)] = read(t, path)
	}
	for _, name := range []string{"debuginfo.spvasm", "opencl.spvasm", "shader.spvasm"} {
		list[name] = assemble(t, source(t, name))
	}
	return list
}

// translatorNumber is that of the LLVM/SPIR-V translator among the generators of
// modules.
const translatorNumber = 6

// readable is a module that spirv-dis reads to its end: it knows neither the name
// of the legacy set nor some numbers that compilers write.
func readable(w []uint32) (out []uint32, changed int) {
	list := instructions(w)
	sets := map[uint32]string{}
	for n, i := range list {
		i = slices.Clone(i)
		list[n] = i
		switch i[0] & 0xffff {
		case opExtInstImport:
			name := strings.TrimRight(string(module(i[2:], binary.LittleEndian)), "\x00")
			if sets[i[1]] = name; name == "SPIRV.debug" {
				b := append([]byte("OpenCL.DebugInfo.100"), 0, 0, 0, 0)
				list[n] = append([]uint32{0, i[1]}, words(b)...)
				list[n][0] = uint32(len(list[n]))<<16 | opExtInstImport
				changed++
			}
		case opExtInst:
			name := sets[i[3]]
			if !strings.HasSuffix(name, "DebugInfo.100") && name != "DebugInfo" && name != "SPIRV.debug" || strings.HasPrefix(name, "NonSemantic") {
				continue
			}
			set := func(at int, v uint32) { i[at] = v; changed++ }
			if l := setByName(name).Layout(Op(i[4])); l != nil {
				for n, p := range l.Parameters {
					if p.Kind == Flags && i[5+n]>>14 != 0 {
						set(5+n, i[5+n]&0x3fff)
					}
				}
			}
			switch op := Op(i[4]); {
			case op == DebugTypeBasic && name == "DebugInfo" && i[7] == 3:
				set(7, 4)
			case op == DebugTypePointer && i[6] == 0xffffffff:
				set(6, 7)
			case op == DebugOperation && (i[5] > 9 || i[5] == 9 && name == "DebugInfo"):
				set(5, 0)
			case (op == DebugTypeTemplateTemplateParameter || op == DebugTypeTemplateParameterPack) && w[2]>>16 == translatorNumber:
				set(4, uint32(DebugTypeTemplateTemplateParameter+DebugTypeTemplateParameterPack-op))
			case op == DebugImportedEntity && len(i) == 13:
				// One operand more than there should be.
				list[n] = slices.Delete(i, 7, 8)
				list[n][0] -= 1 << 16
				changed++
			}
		}
	}
	return join(w, list), changed
}

// disassembled is a record as spirv-dis prints it.
func disassembled(m *Module, r *Record) string {
	w := m.words[r.Offset:]
	l := r.Set.layouts[Op(w[4])] // the number's own name
	parts := []string{fmt.Sprintf("%%%d = OpExtInst %%%d %%%d %s", r.ID, w[1], w[3], l.Name)}
	for i, word := range r.Operands {
		kind := Number
		if i < len(l.Parameters) {
			kind = l.Parameters[i].Kind
		} else if n := len(l.Parameters); n > 0 {
			kind = l.Parameters[n-1].Kind
		}
		switch name, ok := r.Set.enumText(kind, uint64(word)); {
		case kind == Ref || kind == EnumeratorPairs || r.Set.HasConstants:
			parts = append(parts, idText(word))
		case ok:
			parts = append(parts, strings.ReplaceAll(name, "FlagIsPublic", "FlagIsProtected|FlagIsPrivate"))
		default:
			parts = append(parts, fmt.Sprint(word))
		}
	}
	return strings.Join(parts, " ")
}

func TestRecordsAsSpirvDisPrintsThem(t *testing.T) {
	dir := t.TempDir()
	total, patched := 0, 0
	for name, data := range modules(t) {
		w, changed := readable(words(data))
		patched += changed
		in := filepath.Join(dir, "in.spv")
		write(t, in, module(w, binary.LittleEndian))
		text := oracle.Run(t, "spirv-dis", "--raw-id", "--no-color", "--no-indent", in)
		m := parse(t, name, module(w, binary.LittleEndian))
		var expected []string
		for _, line := range strings.Split(text, "\n") {
			for id, set := range m.sets {
				if strings.Contains(line, " = OpExtInst ") && strings.Contains(line, fmt.Sprintf(" %%%d Debug", id)) && set != nil {
					expected = append(expected, line)
				}
			}
		}
		if len(expected) != len(m.records) {
			t.Fatalf("%s: %d records, spirv-dis prints %d", name, len(m.records), len(expected))
		}
		for i := range m.records {
			if got := disassembled(m, &m.records[i]); got != expected[i] {
				t.Errorf("%s: word 0x%x\nspirv-dis %s\nread      %s", name, m.records[i].Offset, expected[i], got)
			}
			total++
		}
		// What had to be changed for spirv-dis is read too, and nothing else of it
		// otherwise.
		original := parse(t, name, data)
		differ := 0
		for i := range original.records {
			if !slices.Equal(original.records[i].Operands, m.records[i].Operands) {
				differ++
			}
		}
		if imported := strings.Contains(string(data), "SPIRV.debug"); len(original.records) != len(m.records) || differ > changed || imported && differ >= changed {
			t.Errorf("%s: %d records differ, expected at most the %d that were changed", name, differ, changed)
		}
	}
	if total < 2000 {
		t.Errorf("%d records, expected 2000 or more", total)
	}
	t.Logf("%d records, %d of them with a number that spirv-dis does not know", total, patched)
}
