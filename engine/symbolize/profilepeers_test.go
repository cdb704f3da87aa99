// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// library is a file of this machine whose frames are compared.
type library struct {
	path  string
	id    []byte
	text  *elf.Section
	code  elf.ProgHeader
	grade int // 3: its own debug information, 2: a separate file's, 1: symbols, 0: exported names
}

// The libraries and frames that are compared, and how large a library may be: llvm-symbolizer reads all of it.
const (
	comparedLibraries = 50
	comparedFrames    = 100_000
	comparedSize      = 160 << 20
)

// openLibrary describes a file; nil: it is not compared.
func openLibrary(path string) *library {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > comparedSize {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	o, err := object.Open(path)
	if err != nil {
		return nil
	}
	defer o.Close()
	l := &library{path: path, id: slices.Clone(o.BuildID()), text: f.Section(".text")}
	if f.Machine != elf.EM_X86_64 || len(l.id) < 8 || l.text == nil || l.text.Size < 4096 {
		return nil
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && l.text.Addr >= p.Vaddr && l.text.Addr-p.Vaddr < p.Memsz {
			l.code = p.ProgHeader
		}
	}
	_, err = os.Stat(fmt.Sprintf("/usr/lib/debug/.build-id/%x/%x.debug", l.id[:1], l.id[1:]))
	switch {
	case f.Section(".debug_info") != nil:
		l.grade = 3
	case err == nil:
		l.grade = 2
	case f.Section(".symtab") != nil:
		l.grade = 1
	}
	return l
}

// libraries are files of this machine, those with the most names first.
func libraries(t *testing.T) (list []*library) {
	t.Helper()
	seen := map[string]bool{}
	home, _ := os.UserHomeDir()
	for _, root := range []string{"/usr/lib/x86_64-linux-gnu", "/usr/bin", "/usr/local/go/pkg/tool", "/usr/local/go/bin", filepath.Join(home, ".cargo/bin"), filepath.Join(home, ".rustup"), filepath.Join(home, "go/bin")} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if l := openLibrary(path); l != nil && !seen[string(l.id)] {
					seen[string(l.id)] = true
					list = append(list, l)
				}
			}
			return nil
		})
	}
	slices.SortStableFunc(list, func(a, b *library) int { return cmp.Compare(b.grade, a.grade) })
	return list[:min(len(list), comparedLibraries)]
}

// peerFrame is a frame in llvm-symbolizer's JSON.
type peerFrame struct {
	FunctionName, FileName string
	Line, Column           int64
}

// TestNamedProfilesEqualLLVMSymbolizer names 100,000 frames of 50 files of this machine, at random addresses, half
// of them as a process has them and half as the eBPF profiler writes them.
func TestNamedProfilesEqualLLVMSymbolizer(t *testing.T) {
	long(t)
	oracle.Tools(t, "llvm-symbolizer-22")
	list := libraries(t)
	if len(list) < comparedLibraries {
		t.Skipf("%d files of this machine have build IDs, expected %d", len(list), comparedLibraries)
	}
	random := rand.New(rand.NewPCG(3, 4))
	m, addresses, grades := newMade(), make([][]uint64, len(list)), map[int]int{}
	finder := object.Finder{Sysroot: "/"}
	for i, l := range list {
		grades[l.grade]++
		page := l.code.Off &^ 4095
		start := l.code.Vaddr - (l.code.Off - page) // of the file
		moved := start
		if i%2 == 0 {
			moved = 0x7f0000000000 + uint64(i)<<32
		}
		n := m.mapping(moved, moved+(l.code.Memsz+8191)&^4095, page, l.path, m.attribute(keyGNU, fmt.Sprintf("%x", l.id)))
		for range comparedFrames / len(list) {
			a := l.text.Addr + random.Uint64N(l.text.Size)
			addresses[i] = append(addresses[i], a)
			m.location(n, a-start+moved)
		}
	}
	data := m.data(t)
	out, counts := name(t, newProfileSymbolizer(t), data, finder)
	t.Logf("%d files: %d with debug information, %d with a debug file, %d with symbols, %d with exported names; %d named, %d not", len(list), grades[3], grades[2], grades[1], grades[0], counts.Named, counts.Unnamed)
	var named profiles.ProfilesData
	if err := proto.Unmarshal(out, &named); err != nil {
		t.Fatal(err)
	}
	d := named.Dictionary
	next, classes, inlined := 1, map[string]int{}, 0
	for i, l := range list {
		peer := peerFrames(t, l.path, addresses[i], "--demangle")
		for k, want := range peer {
			location := d.LocationTable[next]
			next++
			var got []peerFrame
			for _, line := range location.Lines {
				f := d.FunctionTable[line.FunctionIndex]
				got = append(got, peerFrame{d.StringTable[f.NameStrindex], d.StringTable[f.FilenameStrindex], line.Line, line.Column})
			}
			inlined += max(0, len(got)-1)
			class := classOf(got, want)
			if class == different && slices.Equal(rawFrames(d, location), peerFrames(t, l.path, addresses[i][k:k+1], "--no-demangle")[0]) {
				class = respelled
			}
			if classes[class]++; class == different && classes[class] <= 10 {
				t.Errorf("%s %#x:\n got %+v\nwant %+v", l.path, addresses[i][k], got, want)
			}
		}
	}
	t.Logf("%v; %d inlined calls", classes, inlined)
	if classes[respelled] > comparedFrames/1000 {
		t.Errorf("%d names are demangled in other words, expected one of a thousand at most", classes[respelled])
	}
}

// The classes of answers.
const (
	same      = "same"
	moreNames = "named from .gopclntab, MiniDebugInfo or the symbols of a debug file, which llvm-symbolizer does not read"
	respelled = "demangled in other words: the linkage names are equal"
	different = "different"
)

// rawFrames are the frames of a location with their linkage names.
func rawFrames(d *profiles.ProfilesDictionary, l *profiles.Location) (list []peerFrame) {
	for _, line := range l.Lines {
		f := d.FunctionTable[line.FunctionIndex]
		list = append(list, peerFrame{d.StringTable[f.SystemNameStrindex], d.StringTable[f.FilenameStrindex], line.Line, line.Column})
	}
	return list
}

// classOf compares the frames of an address.
func classOf(got, want []peerFrame) string {
	if len(want) == 1 && want[0].FunctionName == "" && len(got) > 0 && got[0].FunctionName != "" {
		return moreNames
	}
	if len(want) == 1 && want[0] == (peerFrame{}) {
		if len(got) == 0 {
			return same
		}
		return moreNames
	}
	if !slices.Equal(got, want) {
		return different
	}
	return same
}

// peerFrames asks llvm-symbolizer.
func peerFrames(t *testing.T, path string, addresses []uint64, option string) (list [][]peerFrame) {
	t.Helper()
	out := oracle.With{Input: linesOf("%#x", addresses)}.Run(t, "llvm-symbolizer-22", "--output-style=JSON", option, "--obj="+path)
	for d := json.NewDecoder(strings.NewReader(out)); len(list) < len(addresses); {
		var answer struct{ Symbol []peerFrame }
		if err := d.Decode(&answer); err != nil {
			t.Fatalf("%s: answer %d: %v", path, len(list), err)
		}
		list = append(list, answer.Symbol)
	}
	return list
}
