// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/binary"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/trace"
)

// The attributes, by the semantic conventions of OpenTelemetry where they have a name,
// else by names of our own.
const (
	otlpProcessID  = "process.pid" // of resources
	otlpThreadID   = "thread.id"   // of samples
	otlpThreadName = "thread.name"
	otlpState      = "unwindd.wave.state"              // the wave's state: a name of trace.WaveState
	otlpLaunch     = "unwindd.launch"                  // the evidence of the wave's launcher: LaunchEvidence
	otlpFrameType  = "profile.frame.type"              // of locations
	otlpGuess      = "unwindd.frame.guess"             // how a frame was guessed: trace.FoundBy
	otlpBuildID    = "process.executable.build_id.gnu" // of mappings
)

// The values of profile.frame.type. The values for accelerators are our own: the conventions
// have none, and allow others.
const (
	otlpKernelFrame = "kernel"
	otlpNativeFrame = "native"
	otlpGPUFrame    = "gpu" // of an unknown architecture
)

// otlpDeviceFrames are the frame types of accelerators, by the architecture of the code
// object.
var otlpDeviceFrames = map[string]string{"amdgpu": "amdgpu", "nvidia": "cuda", "visa": "intelgpu"}

// otlpAttribute is a name with a text or a number.
type otlpAttribute struct {
	key, text string
	number    int64
	isNumber  bool
}

// otlpMapping is a mapping of a code object.
type otlpMapping struct {
	start, limit, offset uint64
	file                 string
	buildID              uint32 // an attribute; 0: none
}

// otlpLocation is an address with its mapping and lines.
type otlpLocation struct {
	address    uint64
	mapping    uint32 // index of mappings
	lines      []profile.Line
	attributes []uint32
}

// attribute is the number of an attribute; 0 for the empty one.
func (b *otlpBuilder) attribute(a otlpAttribute) uint32 {
	n, ok := b.attributeOf[a]
	if !ok {
		n = uint32(len(b.attributes))
		b.attributeOf[a] = n
		b.attributes = append(b.attributes, a)
	}
	return n
}

// locate makes the locations of all frames from the locations of pprof: several may be one
// here, and one may be several.
func (b *otlpBuilder) locate() {
	located := b.pprof.locateFrames()
	b.mappings, b.locations = make([]otlpMapping, 1), make([]otlpLocation, 1)
	mappingOf := map[otlpMapping]uint32{{}: 0}
	locationOf := map[string]uint32{string(b.locations[0].appendKey(nil)): 0}
	numbers := make([]uint32, len(b.r.p.Frames))
	var key []byte
	for i, l := range b.pprof.byFrame {
		if l == nil {
			continue
		}
		f := &b.r.p.Frames[i]
		out := otlpLocation{address: l.Address, lines: l.Line, attributes: b.frameAttributes(f)}
		if l.Mapping != nil {
			m := b.mapping(l.Mapping)
			n, ok := mappingOf[m]
			if !ok {
				n = uint32(len(b.mappings))
				mappingOf[m] = n
				b.mappings = append(b.mappings, m)
			}
			out.mapping = n
		}
		key = out.appendKey(key[:0])
		n, ok := locationOf[string(key)]
		if !ok {
			n = uint32(len(b.locations))
			locationOf[string(key)] = n
			b.locations = append(b.locations, out)
		}
		numbers[i] = n
	}
	b.stacks = newStackNumbers(b.r.p.Stacks, numbers, located > len(b.locations)-1)
}

// mapping is a mapping of pprof. A code object at an unknown address has only the name and
// the build ID: messages have either an address or none.
func (b *otlpBuilder) mapping(m *profile.Mapping) otlpMapping {
	out := otlpMapping{start: m.Start, limit: m.Limit, offset: m.Offset, file: m.File}
	if m.Start >= m.Limit {
		out.start, out.limit = 0, 0
	}
	if m.BuildID != "" {
		out.buildID = b.attribute(otlpAttribute{key: otlpBuildID, text: m.BuildID})
	}
	return out
}

func (b *otlpBuilder) frameAttributes(f *trace.ProfileFrame) (list []uint32) {
	if kind := b.r.frameType(f); kind != "" {
		list = append(list, b.attribute(otlpAttribute{key: otlpFrameType, text: kind}))
	}
	if f.FoundBy.IsGuess() {
		list = append(list, b.attribute(otlpAttribute{key: otlpGuess, text: string(f.FoundBy)}))
	}
	return list
}

// frameType is the profile.frame.type of a frame; "" where it has no address, so that only a
// name is known.
func (r *Profile) frameType(f *trace.ProfileFrame) string {
	kind := ""
	if f.Module >= 0 {
		kind = otlpDeviceFrames[r.p.Modules[f.Module].Arch]
	}
	switch {
	case f.Kernel:
		return otlpKernelFrame
	case kind != "":
		return kind
	case f.Device:
		return otlpGPUFrame
	case f.Managed != nil:
		return otlpRuntimes[f.Managed.Runtime]
	case f.Module < 0 && f.PC == 0:
		return ""
	}
	if n := len(f.Symbols); n > 0 {
		if kind, ok := otlpLanguages[extension(f.Symbols[n-1].File)]; ok {
			return kind
		}
	}
	return otlpNativeFrame
}

// otlpRuntimes are the frame types of language runtimes, by the names of their plugins.
var otlpRuntimes = map[string]string{
	"cpython": "cpython", "hotspot": "jvm", "v8": "v8js", "ruby": "ruby", "php": "php", "beam": "beam", "dotnet": "dotnet", "go": "go",
}

// otlpLanguages are the frame types of languages that are compiled and have one of
// their own, by the names of source files.
var otlpLanguages = map[string]string{".go": "go", ".rs": "rust"}

// extension is the end of a file's name from its last dot on.
func extension(file string) string {
	for i := len(file) - 1; i >= 0 && file[i] != '/'; i-- {
		if file[i] == '.' {
			return file[i:]
		}
	}
	return ""
}

// appendKey appends the key that identifies a location.
func (l *otlpLocation) appendKey(key []byte) []byte {
	key = binary.AppendUvarint(key, l.address)
	key = binary.AppendUvarint(key, uint64(l.mapping))
	key = binary.AppendUvarint(key, uint64(len(l.lines)))
	for i := range l.lines {
		line := &l.lines[i]
		for _, n := range []uint64{line.Function.ID, uint64(line.Line), uint64(line.Column)} {
			key = binary.AppendUvarint(key, n)
		}
	}
	for _, a := range l.attributes {
		key = binary.AppendUvarint(key, uint64(a))
	}
	return key
}
