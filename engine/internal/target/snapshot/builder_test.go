// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// A file is a member of a snapshot that a test makes.
type file struct {
	name  string
	data  []byte
	store bool
}

// obj is a JSON object.
type obj = map[string]any

// archiveOf makes a ZIP file.
func archiveOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.store {
			h.Method = zip.Store
		}
		m, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// documentOf makes the member snapshot.json.
func documentOf(t testing.TB, d any) file {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return file{name: documentName, data: b}
}

// options are what the tests read snapshots with: two architectures.
func options() Options {
	return Options{Describe: func(arch string) (*sdk.Description, error) {
		switch arch {
		case "host":
			return hostDescription(), nil
		case "gpu":
			return gpuDescription(), nil
		case "big":
			d := hostDescription()
			d.Name, d.ByteOrder = "big", sdk.BigEndian
			return d, nil
		case "nil":
			return nil, nil
		}
		return nil, fmt.Errorf("%w of that name", errNoArch)
	}}
}

var errNoArch = errors.New("there is no architecture")

// Numbers of registers of the test's architectures.
const (
	hostSP, hostPC, hostFlags, hostX0, hostST0 = 0, 1, 2, 10, 20
	gpuExec32, gpuPC, gpuExec64                = 1, 16, 17
	gpuS0, gpuV0of32, gpuV0of64                = 32, 1536, 2560
)

// hostDescription is a machine whose vectors have 512 bits.
func hostDescription() *sdk.Description {
	return &sdk.Description{
		Name: "host", Version: "1", AddressBits: 64,
		Recognises: []sdk.Recogniser{{ELFMachine: 62, OSABI: -1}},
		Registers: []sdk.RegisterRange{
			{First: hostSP, Count: 1, Names: []string{"sp"}, Bits: 64},
			{First: hostPC, Count: 1, Names: []string{"pc"}, Bits: 64, Class: sdk.ProgramCounter},
			{First: hostFlags, Count: 1, Names: []string{"flags"}, Bits: 4, Class: sdk.Flags},
			{First: hostX0, Count: 4, Names: []string{"x%d"}, Bits: 512, Class: sdk.Vector},
			{First: hostST0, Count: 2, Names: []string{"st%d"}, Bits: 80, Class: sdk.Float},
		},
		PC: hostPC, SP: hostSP, FP: sdk.NoRegister, ReturnAddress: hostPC,
		AddressSpaces: []sdk.AddressSpace{{Number: 0, Name: "global", Bits: 64}},
		CallDistance:  1, MaxInstruction: 1, StackAlign: 8,
	}
}

// gpuDescription is a machine with waves of 32 and of 64 lanes.
func gpuDescription() *sdk.Description {
	return &sdk.Description{
		Name: "gpu", Version: "1", AddressBits: 64,
		Recognises: []sdk.Recogniser{{ELFMachine: 224, OSABI: -1}},
		Registers: []sdk.RegisterRange{
			{First: gpuExec32, Count: 1, Names: []string{"exec"}, Bits: 32, Class: sdk.Mask, Lanes: 32},
			{First: gpuPC, Count: 1, Names: []string{"pc_64"}, Aliases: []string{"pc"}, Bits: 64, Class: sdk.ProgramCounter},
			{First: gpuExec64, Count: 1, Names: []string{"exec"}, Bits: 64, Class: sdk.Mask, Lanes: 64},
			{First: gpuS0, Count: 8, Names: []string{"sgpr%d"}, Aliases: []string{"s%d"}, Bits: 32},
			{First: gpuV0of32, Count: 4, Names: []string{"vgpr%d"}, Aliases: []string{"v%d"}, Bits: 32 * 32, Class: sdk.Vector, Lanes: 32},
			{First: gpuV0of64, Count: 4, Names: []string{"vgpr%d"}, Aliases: []string{"v%d"}, Bits: 64 * 32, Class: sdk.Vector, Lanes: 64},
		},
		Processors: []sdk.Processor{{Name: "only64", Lanes: []uint32{64}}, {Name: "both", Lanes: []uint32{32, 64}}},
		PC:         gpuPC, SP: sdk.NoRegister, FP: sdk.NoRegister, ReturnAddress: gpuPC,
		AddressSpaces: []sdk.AddressSpace{
			{Number: 0, Name: "global", Bits: 64},
			{Number: 1, Name: "generic", Bits: 64},
			{Number: 3, Name: "local", Bits: 32, Scope: sdk.GroupScope},
			{Number: 4, Name: "agent", Bits: 32, Scope: sdk.AgentScope},
			{Number: 5, Name: "private_lane", Bits: 32, Scope: sdk.LaneScope},
			{Number: 6, Name: "private_wave", Bits: 32, Scope: sdk.WaveScope},
		},
		CallDistance: 1, MaxInstruction: 8, StackAlign: 4,
	}
}

// write puts a snapshot into a file of its own.
func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.snapshot")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// openBytes opens a snapshot that is closed with the test.
func openBytes(t testing.TB, data []byte) *Snapshot {
	t.Helper()
	s, err := Open(write(t, data), options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openDocument opens a snapshot with a document and further members.
func openDocument(t testing.TB, d any, files ...file) *Snapshot {
	t.Helper()
	return openBytes(t, archiveOf(t, append([]file{documentOf(t, d)}, files...)...))
}

// code is where the test's ELF files have code, and data where they have data
// that may be written.
const (
	codeAddress, codeSize = 0x1000, 0x40
	dataAddress           = 0x2000
)

// elfFile makes an ELF file for a machine: a build ID, a segment of code and
// one that may be written.
func elfFile(machine uint16, buildID []byte) []byte {
	order := binary.LittleEndian
	const programs, contents = 3, 64 + 3*56
	var note bytes.Buffer
	for _, n := range []uint32{4, uint32(len(buildID)), 3} {
		binary.Write(&note, order, n)
	}
	note.WriteString("GNU\x00")
	note.Write(buildID)
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	for _, v := range []any{uint16(3), machine, uint32(1), uint64(codeAddress), uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(56), uint16(programs), uint16(64), uint16(0), uint16(0)} {
		binary.Write(&b, order, v)
	}
	program := func(typ, flags uint32, offset, address, size uint64) {
		for _, v := range []any{typ, flags, offset, address, address, size, size, uint64(4)} {
			binary.Write(&b, order, v)
		}
	}
	code := uint64(contents + note.Len())
	program(4, 4, contents, 0, uint64(note.Len()))
	program(1, 5, code, codeAddress, codeSize)
	program(1, 6, code+codeSize, dataAddress, codeSize)
	b.Write(note.Bytes())
	for i := range 2 * codeSize {
		b.WriteByte(byte(i))
	}
	return b.Bytes()
}

// Open maps a snapshot and opens it.
func Open(path string, options Options) (*Snapshot, error) {
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%w: the file is empty", ErrNotSnapshot)
	}
	if err != nil {
		return nil, err
	}
	return OpenMapped(m, options)
}
