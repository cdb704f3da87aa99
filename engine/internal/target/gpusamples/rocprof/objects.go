// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/trace"
)

// The members of a code object (rocprofiler_callback_tracing_code_object_load_data_t).
const (
	objectID = iota
	objectAgent
	objectURI
	objectBase
	objectSize
	objectDelta
	objectMemory
)

var objectFields = []field{
	{path: "code_object_id"}, {path: "agent_id.handle"}, {path: "uri", isText: true},
	{path: "load_base"}, {path: "load_size"}, {path: "load_delta"}, {path: "memory_size"},
}

// codeObject has the facts of a module beyond gpusamples.Module. The PC at an offset is
// base + offset, and the ELF virtual address base + offset - delta.
type codeObject struct {
	agent, base, size uint64
	delta             uint64 // two's complement: it may be negative
	lanes             uint32 // of a wave on its agent; 0 where it is unknown
}

// addObject adds a code object.
func (p *process) addObject(v *values) error {
	id, ok := v.number(objectID)
	if !ok {
		return errNoObjectID
	}
	if id == 0 {
		return nil // the first element, a placeholder
	}
	uri := string(v.text(objectURI))
	if err := p.file.account(len(uri) + 1024); err != nil {
		return err
	}
	var o codeObject
	m := gpusamples.Module{ID: strconv.FormatUint(id, 10), URI: uri, Arch: "amdgpu"}
	o.agent, _ = v.number(objectAgent)
	o.base, _ = v.number(objectBase)
	o.size, _ = v.number(objectSize)
	if v.has(objectDelta) {
		o.delta = v.numbers[objectDelta]
	}
	m.Size, _ = v.number(objectMemory)
	if o.base+o.size < o.base {
		p.problem("code object %d: load_base %#x and load_size %#x reach past the last address: where it was loaded is not known", id, o.base, o.size)
		o.base, o.size, o.delta = 0, 0, 0
	} else if o.size > 0 {
		m.Segments = []trace.Segment{{Address: o.base - o.delta, Size: o.size, Start: o.base}}
	}
	if err := locate(&m); err != nil {
		p.problem("code object %d: uri %q: %v: it is known by its name only", id, jsontext.Clip(uri), err)
	}
	if i, again := p.objects.get(id); again {
		if i != several && p.objectFacts[i-p.firstModule] == o && p.file.facts.Modules[i].URI == uri {
			return nil
		}
		p.problem("code object %d is described twice, and differently: neither is used", id)
	}
	p.objects.add(id, len(p.file.facts.Modules))
	p.file.facts.Modules = append(p.file.facts.Modules, m)
	p.objectFacts = append(p.objectFacts, o)
	return nil
}

// resolveObjects finds the agents of the code objects, and builds the index of addresses.
func (p *process) resolveObjects() {
	var ranges []gpusamples.Range
	for i := range p.objectFacts {
		o, m := &p.objectFacts[i], &p.file.facts.Modules[p.firstModule+i]
		a := p.agents[o.agent]
		o.lanes = a.lanes
		m.PID = p.pid
		// A target ID has features behind the processor: gfx90a:sramecc+:xnack-.
		if name, _, _ := strings.Cut(a.name, ":"); strings.HasPrefix(name, "gfx") {
			m.Processor = name
		}
		for _, s := range m.Segments {
			ranges = append(ranges, gpusamples.Range{Start: s.Start, Size: s.Size, Index: p.firstModule + i})
		}
	}
	p.places = gpusamples.NewPlaces(ranges)
}

// object returns the codeObject of a module.
func (p *process) object(module int) *codeObject { return &p.objectFacts[module-p.firstModule] }

// locate sets a module's file and range of bytes from its URI. The path is of the machine
// that was profiled: nothing is opened here.
func locate(m *gpusamples.Module) error {
	scheme, rest, ok := strings.Cut(m.URI, "://")
	if !ok {
		if m.URI == "" {
			return nil
		}
		return errors.New("expected file://PATH or memory://PID")
	}
	name, parameters := rest, ""
	if i := strings.IndexAny(rest, "#?"); i >= 0 {
		name, parameters = rest[:i], rest[i+1:]
	}
	offset, size, err := byteRange(parameters)
	if err != nil {
		return err
	}
	switch strings.ToLower(scheme) {
	case "memory":
		if size > 0 {
			m.Size = size
		}
		return nil
	case "file":
	default:
		return errors.New("expected file://PATH or memory://PID")
	}
	if name, err = decodePath(name); err != nil {
		return err
	}
	m.Path, m.Offset, m.Size = name, offset, size
	if m.URI == "file://"+name {
		m.URI = ""
	}
	return nil
}

// byteRange reads the parameters offset and size. Size 0 stands for up to the end.
func byteRange(parameters string) (offset, size uint64, err error) {
	for p := range strings.SplitSeq(parameters, "&") {
		var into *uint64
		name, value, _ := strings.Cut(p, "=")
		switch name {
		case "offset":
			into = &offset
		case "size":
			into = &size
		default:
			continue
		}
		base := 10
		if digits, isHex := strings.CutPrefix(strings.ToLower(value), "0x"); isHex {
			value, base = digits, 16
		} else if len(value) > 1 && value[0] == '0' {
			base = 8
		}
		if *into, err = strconv.ParseUint(value, base, 64); err != nil {
			return 0, 0, fmt.Errorf("%s is no number of at most 64 bits", name)
		}
	}
	if offset+size < offset {
		return 0, 0, errors.New("offset and size reach past the last byte that a file may have")
	}
	return offset, size, nil
}

// decodePath reads the path of a URI, in which a byte may be % and two digits.
func decodePath(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	decoded := b.String()
	switch {
	case !strings.HasPrefix(decoded, "/"):
		return "", errors.New("expected an absolute path")
	case strings.IndexByte(decoded, 0) >= 0:
		return "", errors.New("expected a path without a byte 0")
	case slices.Contains(strings.Split(decoded, "/"), ".."):
		return "", errors.New("expected a path that does not climb by ..")
	}
	return decoded, nil
}
