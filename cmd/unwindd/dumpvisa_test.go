// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/plugins/visa/stream"
)

// dumpedVISA is what `dump visa --format json` prints.
type dumpedVISA struct {
	Layout  string
	Objects []struct {
		Name        string
		RelocOffset uint32      `json:"reloc_offset"`
		OffsetMap   [][2]uint32 `json:"offset_map"`
		IndexMap    [][2]uint32 `json:"index_map"`
		Variables   []struct {
			Name      string
			Intervals []dumpedInterval
		}
		Subroutines []struct {
			Name        string
			Start, End  uint32
			ReturnValue []dumpedInterval `json:"return_value"`
		}
		Frame struct {
			Size          uint16
			CEOffset      *uint16          `json:"ce_offset"`
			CEStoreIP     *uint16          `json:"ce_store_ip"`
			BEFP          []dumpedInterval `json:"be_fp"`
			CallerBEFP    []dumpedInterval `json:"caller_be_fp"`
			ReturnAddress []dumpedInterval `json:"return_address"`
			CalleeSaves   []dumpedSave     `json:"callee_saves"`
			CallerSaves   []dumpedSave     `json:"caller_saves"`
		}
	}
	Problems []string
}

type dumpedInterval struct {
	Start, End        uint32
	Virtual, Physical string
	dumpedLocation
}

type dumpedSave struct {
	GenOffset uint32 `json:"gen_offset"`
	Entries   []struct {
		RegisterOffset uint16 `json:"register_offset"`
		Bytes          uint16
		Physical       string
		dumpedLocation
	}
}

type dumpedLocation struct {
	Register, Subregister *uint16
	Base                  *string
	Offset                *int32
}

func dumpVISA(t *testing.T, path string) *dumpedVISA {
	t.Helper()
	stdout, stderr, status := unwindd(t, "dump", "visa", "--format", "json", path)
	if status != 0 || stderr != "" {
		t.Fatalf("%s: status %d\n%s", path, status, stderr)
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	var v dumpedVISA
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return &v
}

// genxText is a stream as GenX_IR -decodedbg prints it, which shows every field
// but the kind of a variable. A general register has so many bytes.
func (v *dumpedVISA) genxText(register int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	intervals := func(list []dumpedInterval) {
		line("\tLive intervals: ")
		for _, i := range list {
			var place string
			switch i.Physical {
			case "memory":
				base := map[string]string{"be_fp": "off be_fp", "absolute": "absolute offset"}[*i.Base]
				place = fmt.Sprintf("Spilled (offset = %d bytes) (%s)", *i.Offset, base)
			case "general":
				place = fmt.Sprintf("r%d.%d:ub", *i.Register, *i.Subregister)
			default:
				place = fmt.Sprintf("%.1s%d.%d", i.Physical, *i.Register, *i.Subregister)
			}
			line("(%d, %d) @ \t%s", i.Start, i.End, place)
		}
		line("")
	}
	maybe := func(list []dumpedInterval, there, absent string) {
		if list == nil {
			line("%s", absent)
			return
		}
		line("%s", there)
		intervals(list)
		line("")
	}
	saves := func(name string, list []dumpedSave) {
		line("%s save:", name)
		for _, s := range list {
			line("Gen ISA offset: %d", s.GenOffset)
			for _, e := range s.Entries {
				var place string
				switch {
				case e.Physical == "general":
					place = fmt.Sprintf("r%d.%d:ub", *e.Register, *e.Subregister)
				case *e.Base == "be_fp":
					place = fmt.Sprintf("BE_FP + %d bytes", *e.Offset)
				default:
					place = fmt.Sprintf("%d bytes", *e.Offset)
				}
				line("\tr%d.%d:ub (%d bytes) -> %s", int(e.RegisterOffset)/register, int(e.RegisterOffset)%register, e.Bytes, place)
			}
		}
		line("")
	}
	line("=== Start of Debug Dump ===")
	line("Magic: 0xdeadd010")
	line("Number of compiled objects: %d\n", len(v.Objects))
	for i, o := range v.Objects {
		line("Current compiled object index: %d\nKernel name: %s", i, o.Name)
		if o.RelocOffset == 0 {
			line("(kernel)")
		} else {
			line("(function binary @ gen offset %d bytes)", o.RelocOffset)
		}
		for _, m := range []struct {
			name string
			list [][2]uint32
		}{{"byte offset", o.OffsetMap}, {"index", o.IndexMap}} {
			line("CISA %s -> Gen byte offset mapping", m.name)
			for _, x := range m.list {
				line("%d\t%d", x[0], x[1])
			}
			line("")
		}
		line("Virtual Register -> Physical Register mapping")
		for _, x := range o.Variables {
			b.WriteString(x.Name)
			intervals(x.Intervals)
		}
		line("\n\nNumber of subroutines: %d", len(o.Subroutines))
		for _, s := range o.Subroutines {
			line("Subroutine name: %s\nStart VISA: %d, end VISA: %d\nRetval: ", s.Name, s.Start, s.End)
			intervals(s.ReturnValue)
		}
		line("\nFrame size: %d bytes", o.Frame.Size)
		maybe(o.Frame.BEFP, "BE_FP: ", "BE_FP not found")
		maybe(o.Frame.CallerBEFP, "Caller BE_FP saved at:", "Caller BE_FP not saved")
		maybe(o.Frame.ReturnAddress, "Return addr saved at:", "Return addr not stored")
		saves("Callee", o.Frame.CalleeSaves)
		saves("Caller", o.Frame.CallerSaves)
	}
	line("=== End of Debug Dump ===")
	return b.String()
}

// platforms are the devices that streams are compiled for, by the names that
// GenX_IR has for them.
var platforms = map[string]string{"skl": "SKL", "icllp": "ICLLP", "tgllp": "TGLLP", "dg2-g10": "DG2", "pvc": "PVC"}

// compareToGenX holds `dump visa` of a stream against the vendor's decoder.
func compareToGenX(t *testing.T, path, device string) *dumpedVISA {
	t.Helper()
	if device == "pvc" {
		return compareTo(t, path, platforms[device], 64)
	}
	return compareTo(t, path, platforms[device], 32)
}

// compareTo does so for a platform whose registers have so many bytes.
func compareTo(t *testing.T, path, platform string, register int) *dumpedVISA {
	t.Helper()
	out := oracle.Run(t, "GenX_IR", "-decodedbg", path, "-platform", platform) // of Debian's libigc-tools
	_, theirs, _ := strings.Cut(out, "\n")                                     // the command line
	v := dumpVISA(t, path)
	if diff := cmp.Diff(strings.Split(theirs, "\n"), strings.Split(v.genxText(register), "\n")); diff != "" {
		t.Errorf("%s (-GenX_IR +got):\n%s", path, diff)
	}
	return v
}

func TestVISAStreamsAsGenXPrintsThem(t *testing.T) {
	files, _ := filepath.Glob("../../plugins/visa/stream/testdata/*.dbg")
	if len(files) < 17 {
		t.Fatalf("%d streams in plugins/visa/stream/testdata, expected 17 or more", len(files))
	}
	for _, path := range files {
		device := regexp.MustCompile(`-(k|rec|multi)-`).Split(filepath.Base(path), 2)[0]
		compareToGenX(t, path, device)
	}
}

// TestRegistersOfPVCAsGenXPrintsThem: GenX_IR takes the size of a register from the
// platform that it is given, not from the stream. For PVC, whose registers have
// 64 bytes, it is right; given a platform of 32, it prints twice the number of
// each register that is saved, and nothing else differs.
func TestRegistersOfPVCAsGenXPrintsThem(t *testing.T) {
	const path = "../../plugins/visa/stream/testdata/pvc-rec-O0-1.dbg"
	compareTo(t, path, "PVC", 64)
	compareTo(t, path, "DG2", 32)
}

func TestFilesThatAreNoStreams(t *testing.T) {
	for _, c := range []struct{ bytes, want string }{
		{"\x7fELF\x02", "f: vISA stream+0x0: magic_number: 7f 45 4c 46, expected 0xdeadd010: this is an ELF file; the compiler writes the stream to a file of its own, KERNEL.dbg\n"},
		{"CTNI\x01", "magic_number: 43 54 4e 49, expected 0xdeadd010: this is a container of ELF files; the"},
		{"no", "f: vISA stream+0x0: magic_number: 6e 6f, expected 0xdeadd010\n"},
		{"\x10\xd0\xad\xde\x01\x00", "f: vISA stream+0x6: objects: 1 of at least 29 bytes each, expected no more than the 0 bytes that are left in the stream\n"},
		{"", "f: file is empty"},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(c.bytes), 0o644); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, status := unwindd(t, "dump", "visa", path)
		if status != 1 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: status %d, %q %q, want %q", c.bytes, status, stdout, stderr, c.want)
		}
	}
}

// TestVISAStreamsCompiledAfresh compares what the compiler at hand writes for
// each device with and without optimization, and holds corrected offsets of
// saves against its assembly.
func TestVISAStreamsCompiledAfresh(t *testing.T) {
	long(t)
	oracle.Tools(t, "ocloc")
	t.Parallel()
	seen := map[string]int{}
	for device := range platforms {
		for level, options := range map[string]string{"O0": "-g -cl-opt-disable", "O2": "-g"} {
			if isNewer := device == "dg2-g10" || device == "pvc"; !proof.IsAsked() && (level == "O2") != isNewer {
				continue // the newer ones are compiled with optimization, the others without
			}
			for _, source := range []string{"rec", "k", "spill"} {
				for _, path := range compileVISA(t, source, device, options) {
					v := compareToGenX(t, path, device)
					for _, o := range v.Objects {
						seen["variables"] += len(o.Variables)
						seen["subroutines"] += len(o.Subroutines)
						seen["callee saves"] += len(o.Frame.CalleeSaves)
						seen["caller saves"] += len(o.Frame.CallerSaves)
						if o.Frame.ReturnAddress != nil {
							seen["return addresses"]++
						}
						for _, x := range o.Variables {
							for _, i := range x.Intervals {
								seen[i.Physical]++
							}
						}
					}
					seen["streams"]++
					if v.Layout != "A" {
						t.Errorf("%s-%s-%s: layout %s", device, source, level, v.Layout)
					}
					seen["saves in the assembly"] += compareToAssembly(t, path)
				}
			}
		}
	}
	for _, what := range []string{"streams", "variables", "subroutines", "callee saves", "caller saves", "return addresses", "general", "flag", "address", "memory", "saves in the assembly"} {
		if seen[what] == 0 {
			t.Errorf("no %s in what was compiled", what)
		}
	}
	t.Log(seen)
}

// compileVISA compiles a source of the decoder's testdata, and gives the paths of
// its debug streams. Beside each is the assembly.
func compileVISA(t *testing.T, source, device, options string) []string {
	t.Helper()
	source, err := filepath.Abs("../../plugins/visa/stream/testdata/" + source + ".cl")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{{"sh", "-c", `IGC_ShaderDumpEnable=1 IGC_DumpToCustomDir="$PWD/dump/" exec "$0" "$@"`,
		"ocloc", "compile", "-file", source, "-device", device, "-options", options}}}.Make(t)
	streams, _ := filepath.Glob(dir + "/dump/*.dbg")
	if len(streams) == 0 {
		t.Fatalf("ocloc wrote no stream of %s for %s", source, device)
	}
	return streams
}

// savedInAssembly is a message that saves registers to the frame: `[r126:1] r60:4
// ... spill to FP[2*32]`.
var savedInAssembly = regexp.MustCompile(`\] r(\d+):(\d+) .*spill to FP\[(\d+)\*(\d+)\]`)

// compareToAssembly holds where the corrected frames save registers against the
// messages that save them, and counts what it compared. The assembly names
// frame slots on DG2 and PVC only.
func compareToAssembly(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stream.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	asm, err := os.ReadFile(strings.TrimSuffix(path, ".dbg") + ".asm")
	if err != nil {
		t.Fatal(err)
	}
	type save struct{ offset, register, bytes int }
	var stored []save
	for _, m := range savedInAssembly.FindAllStringSubmatch(string(asm), -1) {
		var first, count, slot, size int
		fmt.Sscan(strings.Join(m[1:], " "), &first, &count, &slot, &size)
		for i := range count {
			stored = append(stored, save{(slot + i) * size, (first + i) * size, size})
		}
	}
	if len(stored) == 0 {
		return 0
	}
	compared := 0
	frames, _ := s.Corrected()
	for i, f := range frames {
		for _, list := range [][]stream.Save{f.CalleeSaves, f.CallerSaves} {
			for _, x := range list {
				for _, g := range x.Registers {
					compared++
					if !slices.Contains(stored, save{int(g.Location.Offset), int(g.Offset), int(g.Bytes)}) {
						t.Errorf("%s: %s: %+v is stored by no instruction", path, s.Objects[i].Name, g)
					}
				}
			}
		}
	}
	return compared
}
