// SPDX-License-Identifier: Apache-2.0

// Package waves writes snapshots of many waves, made from a small one.
package waves

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// seedPath is a snapshot of a process and four waves that it waits for. The large
// ones have its code objects.
const seedPath = "../../examples/mixed/mixed.snapshot"

// Places in the seed: where the host waits and how large its frame is there, and
// code of the kernel `grade`.
const (
	hostID       = "24947"
	hostPC       = 0x401080
	hostSP       = 0x7ffc46530048
	hostFrame    = 0x20
	hostMemory   = "memory/0.bin"
	hostBase     = 0x7ffc4652ff48
	waveMemory   = "memory/1.bin"
	wavePC       = 0x7f420000164c
	kernelCode   = 0x7f4200001600
	kernelPlaces = 48
)

// kind of waves says in what they differ.
type kind struct {
	name       string
	hasPlaces  bool // they are at many places of the code
	hasVectors bool // they have vector registers and private memory of their own
	depth      int  // frames of their launcher more than the seed's
	recorded   int  // frames that were recorded at their launch, instead of a launcher that waits
}

var kinds = []kind{
	{name: "equal"},
	{name: "places", hasPlaces: true},
	{name: "deep", depth: 300},
	{name: "recorded", recorded: 100},
	{name: "vectors", hasVectors: true},
}

// Write writes a snapshot of n waves of a kind.
func Write(path, name string, n int) error {
	for _, k := range kinds {
		if k.name == name {
			return k.write(path, n)
		}
	}
	return fmt.Errorf("no kind %q of waves", name)
}

func (k *kind) write(path string, n int) (err error) {
	seed, err := zip.OpenReader(seedPath)
	if err != nil {
		return err
	}
	defer seed.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	out := zip.NewWriter(f)
	out.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	var document map[string]json.RawMessage
	var host json.RawMessage
	for _, m := range seed.File {
		data, err := read(m)
		if err != nil {
			return err
		}
		switch m.Name {
		case "snapshot.json":
			if err := json.Unmarshal(data, &document); err != nil {
				return err
			}
			continue
		case hostMemory:
			data = deepen(data, k.depth)
		}
		w, err := out.CreateHeader(&zip.FileHeader{Name: m.Name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return err
		}
	}
	var threads []json.RawMessage
	if err := json.Unmarshal(document["threads"], &threads); err != nil {
		return err
	}
	host = threads[0]
	if k.depth > 0 {
		host = json.RawMessage(strings.Replace(string(host), fmt.Sprintf(`"rsp":"%#x"`, hostSP), fmt.Sprintf(`"rsp":"%#x"`, hostSP-k.depth*hostFrame), 1))
	}
	member, err := out.CreateHeader(&zip.FileHeader{Name: "snapshot.json", Method: zip.Deflate})
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(member, 1<<20)
	fmt.Fprintf(w, "{\"format_version\":1,\n\"modules\":%s,\n\"threads\":[\n%s", document["modules"], host)
	for i := range n {
		fmt.Fprint(w, ",\n")
		k.wave(w, threads[3], i)
	}
	fmt.Fprintf(w, "],\n\"memory\":[\n{\"file\":%q,\"address\":\"%#x\"}", hostMemory, hostBase-k.depth*hostFrame)
	for i := range n {
		if k.hasVectors {
			fmt.Fprintf(w, ",\n{\"file\":%q,\"space\":\"private_wave\",\"address\":\"0x0\",\"scope\":{\"wave\":\"w%d\"}}", waveMemory, i)
		}
	}
	fmt.Fprintf(w, "]}\n")
	if err := w.Flush(); err != nil {
		return err
	}
	return out.Close()
}

func read(m *zip.File) ([]byte, error) {
	r, err := m.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// deepen puts frames of the function that waits below the stack: each was called
// where it waits.
func deepen(stack []byte, depth int) []byte {
	at := hostSP - hostBase
	var frames []byte
	for range depth {
		frame := append([]byte(nil), stack[at:][:hostFrame]...)
		binary.LittleEndian.PutUint64(frame[hostFrame-8:], hostPC)
		frames = append(frames, frame...)
	}
	return append(append(append([]byte(nil), stack[:at]...), frames...), stack[at:]...)
}

// wave writes a wave, as a debugger would: in a kernel with its scalar registers, or
// in a function that was called, with the vector registers that its frames need.
func (k *kind) wave(w io.Writer, seed json.RawMessage, i int) {
	if k.hasVectors {
		k.vectorWave(w, seed, i)
		return
	}
	pc := uint64(wavePC)
	if k.hasPlaces {
		pc = kernelCode + uint64(i%kernelPlaces)*4
	}
	fmt.Fprintf(w, `{"id":"w%d","arch":"amdgpu","processor":"gfx90a","lanes":64,"registers":{"EXEC":"0xff0000ff","PC":"%#x","SGPR0":"%#x","SGPR1":"0xf"`, i, pc, i*4096)
	fmt.Fprint(w, `,"SGPR2":"0x2000","SGPR3":"0x7f43","SGPR4":"0x0","SGPR5":"0x7f43","SGPR6":"0x0","SGPR7":"0x7f43","SGPR32":"0x400","SGPR33":"0x0","VCC":"0xff0000ff"}`)
	fmt.Fprintf(w, `,"wave":{"agent":"1","queue":"1","dispatch":"1","kernel":"grade","group":[%d,0,0],"in_group":0}`, i)
	fmt.Fprintf(w, `,"launched_by":{"thread":%q,"kind":"dispatch","evidence":`, hostID)
	if k.recorded == 0 {
		fmt.Fprint(w, `"waiting"}}`)
		return
	}
	fmt.Fprintf(w, `"recorded","frames":["%#x"`, hostPC)
	for range k.recorded - 1 {
		fmt.Fprintf(w, `,"%#x"`, hostPC)
	}
	fmt.Fprint(w, `]}}`)
}

// vectorWave writes a wave of the seed with vector registers of its own.
func (k *kind) vectorWave(w io.Writer, seed json.RawMessage, i int) {
	text := strings.Replace(string(seed), `"id":"w2"`, fmt.Sprintf(`"id":"w%d"`, i), 1)
	own := strings.Repeat(fmt.Sprintf("%08x", i), 64)
	for _, v := range []string{"VGPR0", "VGPR1"} {
		at := strings.Index(text, `"`+v+`":"`) + len(v) + 4
		text = text[:at] + own + text[at+len(own):]
	}
	fmt.Fprint(w, text)
}
