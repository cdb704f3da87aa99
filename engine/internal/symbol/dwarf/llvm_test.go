// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

func openMapped(t testing.TB, path string) *Reader {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		o.Close()
	})
	return r
}

// A subject is a program of the test's that is compiled in some way.
type subject struct {
	name    string
	sources []string // in testdata
	command []string
	after   [][]string // run in the directory of the program p
	file    string     // what is read; "": p
}

const shapes = "../../resolve/testdata/"

var (
	cpp  = []string{shapes + "shapes.cpp", shapes + "other.cpp"}
	bare = []string{"bare.c"}
)

// subjects are the forms in which compilers and tools write DWARF.
var subjects = []subject{
	{"gcc 5", cpp, []string{"g++", "-O2", "-gdwarf-5"}, nil, ""},
	{"gcc 4", cpp, []string{"g++", "-O2", "-gdwarf-4"}, nil, ""},
	{"gcc 3", cpp, []string{"g++", "-O2", "-gdwarf-3", "-gstrict-dwarf"}, nil, ""},
	{"gcc 2", cpp, []string{"g++", "-O2", "-gdwarf-2", "-gstrict-dwarf"}, nil, ""},
	{"gcc O0", cpp, []string{"g++", "-O0", "-g"}, nil, ""},
	{"gcc 64-bit", cpp, []string{"g++", "-O2", "-gdwarf-5", "-gdwarf64"}, nil, ""},
	{"gcc 64-bit 4", cpp, []string{"g++", "-O2", "-gdwarf-4", "-gdwarf64"}, nil, ""},
	{"gcc type units 5", cpp, []string{"g++", "-O2", "-gdwarf-5", "-fdebug-types-section"}, nil, ""},
	{"gcc type units 4", cpp, []string{"g++", "-O2", "-gdwarf-4", "-fdebug-types-section"}, nil, ""},
	{"gcc zlib", cpp, []string{"g++", "-O2", "-g", "-gz=zlib"}, nil, ""},
	{"gcc zdebug", cpp, []string{"g++", "-O2", "-g"}, [][]string{{"objcopy", "--compress-debug-sections=zlib-gnu", "p", "z"}}, "z"},
	{"gcc zstd", cpp, []string{"g++", "-O2", "-g"}, [][]string{{"llvm-objcopy-22", "--compress-debug-sections=zstd", "p"}}, ""},
	{"gcc link-time", cpp, []string{"g++", "-O2", "-g", "-flto"}, nil, ""},
	{"gcc sections collected", cpp, []string{"g++", "-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"}, nil, ""},
	{"gcc split 5", cpp, []string{"g++", "-O2", "-gdwarf-5", "-gsplit-dwarf"}, nil, ""},
	{"gcc split 4", cpp, []string{"g++", "-O2", "-gdwarf-4", "-gsplit-dwarf"}, nil, ""},
	{"gcc split type units 5", cpp, []string{"g++", "-O2", "-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"}, nil, ""},
	{"gcc split type units 4", cpp, []string{"g++", "-O2", "-gdwarf-4", "-gsplit-dwarf", "-fdebug-types-section"}, nil, ""},
	{"gcc package 5", cpp, []string{"g++", "-O2", "-gdwarf-5", "-gsplit-dwarf"}, packaged, ""},
	{"gcc package 4", cpp, []string{"g++", "-O2", "-gdwarf-4", "-gsplit-dwarf"}, packaged, ""},
	{"gcc package type units 5", cpp, []string{"g++", "-O2", "-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"}, packaged, ""},
	{"gcc package type units 4", cpp, []string{"g++", "-O2", "-gdwarf-4", "-gsplit-dwarf", "-fdebug-types-section"}, packaged, ""},
	{"gcc gdb index", cpp, []string{"g++", "-O2", "-g", "-ggnu-pubnames", "-fuse-ld=lld", "-Wl,--gdb-index"}, nil, ""},
	{"gcc dwz 5", cpp, []string{"g++", "-O2", "-gdwarf-5"}, [][]string{{"dwz", "p"}}, ""},
	{"gcc dwz 4", cpp, []string{"g++", "-O2", "-gdwarf-4"}, [][]string{{"dwz", "p"}}, ""},
	{"gcc dwz shared 5", cpp, []string{"g++", "-O2", "-gdwarf-5"}, shared("dwz"), "a"},
	{"gcc dwz shared 4", cpp, []string{"g++", "-O2", "-gdwarf-4"}, shared("dwz"), "a"},
	{"gcc dwz shared debug_sup", cpp, []string{"g++", "-O2", "-gdwarf-5"}, shared("dwz", "--dwarf-5"), "a"},
	{"clang 5", cpp, []string{"clang++", "-O2", "-gdwarf-5"}, nil, ""},
	{"clang 4", cpp, []string{"clang++", "-O2", "-gdwarf-4"}, nil, ""},
	{"clang 2", cpp, []string{"clang++", "-O2", "-gdwarf-2"}, nil, ""},
	{"clang discriminators", cpp, []string{"clang++", "-O2", "-g", "-fdebug-info-for-profiling"}, nil, ""},
	{"clang embedded source", cpp, []string{"clang++", "-O2", "-gdwarf-5", "-gembed-source"}, nil, ""},
	{"clang split 5", cpp, []string{"clang++", "-O2", "-gdwarf-5", "-gsplit-dwarf"}, nil, ""},
	{"clang split 4", cpp, []string{"clang++", "-O2", "-gdwarf-4", "-gsplit-dwarf"}, nil, ""},
	{"clang split inlining", cpp, []string{"clang++", "-O2", "-gdwarf-5", "-gsplit-dwarf", "-fsplit-dwarf-inlining"}, nil, ""},
	{"clang package 5", cpp, []string{"clang++", "-O2", "-gdwarf-5", "-gsplit-dwarf"}, packaged, ""},
	{"clang type units 5", cpp, []string{"clang++", "-O2", "-gdwarf-5", "-fdebug-types-section"}, nil, ""},
	{"clang names", cpp, []string{"clang++", "-O2", "-gdwarf-5", "-gpubnames"}, nil, ""},
	{"clang aranges", cpp, []string{"clang++", "-O2", "-g", "-gdwarf-aranges"}, nil, ""},
	{"big endian 64", bare, other("powerpc64-linux-gnu", 5), nil, ""},
	{"big endian 32", bare, other("mips-linux-gnu", 4), nil, ""},
	{"32 bit", bare, other("i386-linux-gnu", 5), nil, ""},
	{"arm", bare, other("arm-linux-gnueabi", 4), nil, ""},
	{"aarch64", bare, other("aarch64-linux-gnu", 5), nil, ""},
	{"relocatable 5", bare, []string{"gcc", "-c", "-O2", "-gdwarf-5"}, nil, ""},
}

// packaged puts the split files of a program into a package, and removes them.
var packaged = [][]string{{"llvm-dwp-22", "-e", "p", "-o", "p.dwp"}, {"sh", "-c", "rm *.dwo"}}

// shared moves what two copies of a program have in common into a supplementary
// file. llvm-symbolizer reads none, and is asked of the program as it was.
func shared(dwz ...string) [][]string {
	return [][]string{{"cp", "p", "a"}, {"cp", "p", "b"}, append(dwz, "-m", "common", "a", "b")}
}

func other(target string, version int) []string {
	return []string{"clang", "--target=" + target, "-O2", fmt.Sprintf("-gdwarf-%d", version), "-ffreestanding", "-nostdlib", "-static", "-fuse-ld=lld"}
}

// build returns the path of the program, and of the form of it to read. Nobody may
// change them: all tests share them.
func (s *subject) build(t testing.TB) (whole, path string) {
	t.Helper()
	args := append([]string(nil), s.command[1:]...)
	if strings.HasSuffix(s.sources[0], ".cpp") {
		args = append(args, "-std=c++17")
	}
	// The output goes before the sources: so go wants it.
	args = append(args, "-o", "p")
	var folders []string
	for _, source := range s.sources {
		path, err := filepath.Abs(filepath.Join("testdata", source))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
		if folder := filepath.Dir(path); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	commands := append([][]string{append(s.command[:1:1], args...)}, s.after...)
	whole = filepath.Join(oracle.Build{Sources: folders, Commands: commands}.Make(t), "p")
	if s.file != "" {
		return whole, filepath.Join(filepath.Dir(whole), s.file)
	}
	return whole, whole
}

// textAddresses are at most n addresses of .text; where it is larger than n, picked at random.
func textAddresses(t testing.TB, path string, n int) []uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	var list []uint64
	if text.Size <= uint64(n) {
		for i := range text.Size {
			list = append(list, text.Addr+i)
		}
		return list
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		list = append(list, text.Addr+random.Uint64N(text.Size))
	}
	return list
}

// A llvmFrame is a frame as llvm-symbolizer writes it.
type llvmFrame struct {
	FunctionName, FileName, StartFileName, StartAddress string
	Line, Column, StartLine                             int
	Discriminator                                       uint64
}

// llvmFrames asks llvm-symbolizer what DWARF says, without the symbol table.
func llvmFrames(t testing.TB, path string, addresses []uint64) [][]llvmFrame {
	t.Helper()
	var in strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	out := oracle.With{Input: in.String()}.Run(t, "llvm-symbolizer-22", "--functions=short", "--output-style=JSON", "--obj="+path)
	var list [][]llvmFrame
	for line := range strings.Lines(out) {
		var answer struct{ Symbol []llvmFrame }
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatal(err)
		}
		list = append(list, answer.Symbol)
	}
	if len(list) != len(addresses) {
		t.Fatalf("llvm-symbolizer gave %d answers, expected %d", len(list), len(addresses))
	}
	return list
}

// asLLVM writes frames as llvm-symbolizer does.
func asLLVM(frames []trace.Symbol) []llvmFrame {
	list := []llvmFrame{}
	for _, f := range frames {
		x := llvmFrame{
			FunctionName: f.Name, FileName: f.File, StartFileName: f.StartFile, Line: f.Line, Column: f.Column,
			StartLine: f.StartLine, Discriminator: f.Discriminator,
		}
		if f.HasStart {
			x.StartAddress = "0x" + strconv.FormatUint(f.Start, 16)
		}
		list = append(list, x)
	}
	if len(list) == 0 {
		return []llvmFrame{{}}
	}
	return list
}

// checkFrames compares everything that both say of some addresses of a program.
// What llvm-symbolizer leaves out is not compared: the start of a function that
// has several ranges, and the file of a declaration where it is a
// DW_FORM_implicit_const.
func checkFrames(t *testing.T, whole, path string, n int) (inlined int) {
	t.Helper()
	r := openMapped(t, path)
	addresses := textAddresses(t, whole, n)
	failed, fileless := 0, 0
	for i, want := range llvmFrames(t, whole, addresses) {
		frames, err := r.Frames(nil, addresses[i])
		if err != nil {
			t.Fatal(err)
		}
		got := asLLVM(frames)
		inlined += len(got) - 1
		if len(got) == len(want) {
			for k := range got {
				if want[k].StartAddress == "" && k == len(got)-1 {
					got[k].StartAddress = ""
				}
				if want[k].StartFileName == "" && want[k].StartLine != 0 && got[k].StartFileName != "" {
					got[k].StartFileName = ""
					fileless++
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			if failed++; failed <= 3 {
				t.Errorf("%#x: (-llvm-symbolizer +ours)\n%s", addresses[i], diff)
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d addresses differ", failed, len(addresses))
	}
	if fileless > 0 {
		t.Logf("llvm-symbolizer has no file of %d declarations", fileless)
	}
	if p := r.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	return inlined
}

func TestFramesEqualLLVMSymbolizer(t *testing.T) {
	oracle.Tools(t, "llvm-symbolizer-22")
	for i, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			if testing.Short() && i%8 != 0 {
				t.Skip("one of 8")
			}
			t.Parallel()
			whole, path := s.build(t)
			addresses := 1500
			if proof.IsRequested() {
				addresses = 4000
			}
			if inlined := checkFrames(t, whole, path, addresses); inlined < 20 && s.name != "gcc O0" {
				t.Errorf("only %d inlined calls were compared", inlined)
			}
		})
	}
}

// largeSubjects take a while to build and to ask about.
var largeSubjects = []subject{
	{"gcc large", []string{"large.cc"}, []string{"g++", "-std=c++17", "-O2", "-g", "-pthread"}, nil, ""},
	{"gcc large split", []string{"large.cc"}, []string{"g++", "-std=c++17", "-O2", "-g", "-pthread", "-gsplit-dwarf"}, nil, ""},
	{"gcc large dwz", []string{"large.cc"}, []string{"g++", "-std=c++17", "-O2", "-g", "-pthread"}, [][]string{{"dwz", "-L", "none", "-l", "none", "p"}}, ""},
	{"clang large", []string{"large.cc"}, []string{"clang++", "-std=c++17", "-O2", "-g", "-pthread"}, nil, ""},
	{"rust", []string{"../../../../../internal/subject/testdata/rustsubject.rs"}, []string{"rustc", "-O", "-g"}, nil, ""},
	{"go", []string{"../../../../../internal/subject/testdata/gosubject/main.go"}, []string{"go", "build", "-ldflags=-compressdwarf=true"}, nil, ""},
}

func TestFramesOfLargeProgramsEqualLLVMSymbolizer(t *testing.T) {
	proof.Only(t)
	oracle.Tools(t, "llvm-symbolizer-22")
	for _, s := range largeSubjects {
		t.Run(s.name, func(t *testing.T) {
			whole, path := s.build(t)
			inlined := checkFrames(t, whole, path, 20000)
			t.Logf("%d inlined calls", inlined)
			if inlined < 1000 {
				t.Errorf("only %d inlined calls were compared", inlined)
			}
		})
	}
}
