// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

// process is a process that was profiled. All IDs are its own.
type process struct {
	file  *File
	index int
	pid   int // -1: unknown
	name  string

	agents        map[uint64]agent // by handle
	lanes         uint32           // of all its GPUs; 0 where they differ
	objects       indices          // modules by code_object_id
	objectFacts   []codeObject     // of the modules from firstModule on
	firstModule   int
	kernels       indices        // by kernel_id
	kernelFacts   []kernelSymbol // of the kernels from firstKernel on
	firstKernel   int
	dispatches    indices        // by dispatch_id
	dispatchRefs  []dispatchRefs // of the dispatches from firstDispatch on
	firstDispatch int
	// undescribed are the correlation IDs of dispatches that are in samples only, and
	// sampledLaunches their launches, by dispatch_id.
	undescribed     map[uint64]uint64
	sampledLaunches indices
	launches        launches
	texts           texts
	places          gpusamples.Places
	chunks          []chunk

	member string // being read
}

// read reads the file. Errors become problems.
func (f *File) read() {
	r := f.reader(0)
	err := r.Object(func(name []byte) error {
		if string(name) != topMember {
			return r.Skip()
		}
		return r.Array(func(i int) error { return f.readProcess(r, i) })
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		f.problem("%v: the rest of the file is not read", err)
	}
	f.mapping.ReleasePages(0, uint64(len(f.data)))
}

// readProcess reads the object of one process.
func (f *File) readProcess(r *jsontext.Reader, i int) error {
	if r.Next() != '{' {
		return f.leaveOut(r, jsontext.Within(r.Unexpected("an object"), fmt.Sprintf(".%s[%d]", topMember, i)))
	}
	if err := f.account(4096); err != nil {
		return f.leaveOut(r, err)
	}
	p := &process{
		file: f, index: len(f.processes), pid: -1, agents: map[uint64]agent{}, undescribed: map[uint64]uint64{},
		firstModule: len(f.facts.Modules), firstKernel: len(f.facts.Kernels), firstDispatch: len(f.facts.Dispatches),
	}
	f.processes = append(f.processes, p)
	p.launches = launches{process: p, first: len(f.facts.Launches), byCorrelation: map[uint64]int32{}, byThread: map[int]int32{}, others: map[uint64]call{}}
	p.texts = texts{process: p}
	err := p.members(r, map[string]member{
		"metadata":       {'{', p.readMetadata},
		"agents":         p.array(agentFields, maxAgent, p.addAgent),
		"strings":        {'{', p.texts.read},
		"code_objects":   p.array(objectFields, maxRecord, p.addObject),
		"kernel_symbols": p.array(kernelFields, maxRecord, p.addKernel),
		"buffer_records": {'{', p.readRecords},
	})
	p.resolve() // also where the text is truncated here
	return err
}

// readRecords reads the records that the profiler took.
func (p *process) readRecords(r *jsontext.Reader) error {
	members := map[string]member{
		"kernel_dispatch":      {'[', p.readDispatches},
		"pc_sample_host_trap":  {'[', p.readSamples},
		"pc_sample_stochastic": {'[', p.readSamples},
	}
	for rank, name := range apis {
		members[name] = member{'[', func(r *jsontext.Reader) error { return p.launches.read(r, rank) }}
	}
	return p.members(r, members)
}

// member is how a member of an object is read, and the byte that it begins with: 0 for a
// number.
type member struct {
	begin byte
	read  func(r *jsontext.Reader) error
}

// members reads the known members of an object. A member of another type is left out.
func (p *process) members(r *jsontext.Reader, known map[string]member) error {
	return r.Object(func(name []byte) error {
		m, ok := known[string(name)]
		if !ok {
			return r.Skip()
		}
		begin := r.Next()
		if begin >= '0' && begin <= '9' || begin == '-' {
			begin = '0'
		}
		if begin == m.begin {
			p.member = string(name)
			return m.read(r)
		}
		want := map[byte]string{'{': "an object", '[': "an array", '0': "a number"}[m.begin]
		return p.file.leaveOut(r, jsontext.Within(r.Unexpected(want), "."+string(name)))
	})
}

// leaveOut skips a value that is wrong.
func (f *File) leaveOut(r *jsontext.Reader, err error) error {
	if err := r.Skip(); err != nil {
		return err
	}
	f.problem("%v: it is left out", err)
	return nil
}

// array returns the member that is an array of records, and calls add for each.
func (p *process) array(fields []field, most int, add func(*values) error) member {
	return member{'[', func(r *jsontext.Reader) error { return p.readArray(r, fields, most, add) }}
}

func (p *process) readArray(r *jsontext.Reader, fields []field, most int, add func(*values) error) error {
	return p.each(r, p.file.newRecords(fields, most), func(v *values, _ int) error { return add(v) })
}

// each reads an array of records, and calls add for each with its offset. A record that is
// wrong is a problem, and the next is read.
func (p *process) each(r *jsontext.Reader, s *records, add func(v *values, offset int) error) error {
	f, wrong := p.file, 0
	return r.Array(func(i int) error {
		f.passed(r.At)
		if wrong >= maxWrong {
			return r.Skip()
		}
		r.Next()
		offset := r.At
		err := s.next(r)
		if err != nil && !isWrongRecord(err) {
			return err
		}
		isRead := err == nil
		if isRead {
			err = add(&s.values, offset)
		}
		if err == nil {
			return nil
		}
		if wrong++; wrong == maxWrong {
			f.abandoned++
		}
		if !f.problems.HasRoom(maxProblems) { // formatting takes longer than reading
			return nil
		}
		if isRead {
			err = &wrongRecord{r.Fail(offset, "%v", err)}
		}
		p.problem("%v", jsontext.Within(err, fmt.Sprintf(".%s[%d]", p.member, i)))
		return nil
	})
}

// problem adds a problem of the process.
func (p *process) problem(format string, args ...any) {
	p.file.problem(p.prefix()+format, args...)
}

// prefix returns the beginning of messages about the process where there are several.
func (p *process) prefix() string {
	if p.index == 0 {
		return ""
	}
	return fmt.Sprintf("process %d of the file: ", p.index+1)
}

// readMetadata reads the ID and the name of the process.
func (p *process) readMetadata(r *jsontext.Reader) error {
	return p.members(r, map[string]member{
		"pid": {'0', func(r *jsontext.Reader) error {
			raw, err := r.Raw()
			if err != nil {
				return err
			}
			pid, err := raw.Reader().Integer(math.MaxInt32)
			if err != nil {
				p.problem("%v: the process has no pid", jsontext.Within(err, ".metadata.pid"))
				return nil
			}
			p.pid = int(pid)
			return nil
		}},
		"command": {'[', func(r *jsontext.Reader) error {
			return r.Array(func(i int) error {
				if i > 0 || r.Next() != '"' {
					return r.Skip()
				}
				text, err := p.text(r)
				if p.name = path.Base(text); text == "" {
					p.name = ""
				}
				return err
			})
		}},
	})
}

// resolve finds what the records refer to, when all of the process were read.
func (p *process) resolve() {
	p.resolveObjects()
	p.resolveKernels()
	p.launches.find()
	p.resolveDispatches()
	p.launches.resolve()
	p.texts.finish()
	p.kernelFacts, p.dispatchRefs, p.undescribed = nil, nil, nil
}

// text reads a string, and copies it. One that is too long is a problem, and "".
func (p *process) text(r *jsontext.Reader) (string, error) {
	raw, err := r.Raw()
	if err != nil {
		return "", err
	}
	text, err := textOf(raw)
	if err == nil {
		err = p.file.account(len(text) + 16)
	}
	if err != nil {
		p.problem("%v: it is left out", err)
		return "", nil
	}
	return string(text), nil
}

// textOf returns the text of a string that is not too long.
func textOf(raw jsontext.Raw) (text []byte, err error) {
	size := len(raw.Data) - len(`""`)
	r := raw.Reader()
	if size <= maxEscape*jsontext.MaxText { // else it is too long without a look at it
		if text, err = r.Text(); err != nil {
			return nil, err
		}
		size = len(text)
	}
	if size > jsontext.MaxText {
		return nil, r.Fail(raw.Offset, "a string of %d bytes, expected at most %d", size, jsontext.MaxText)
	}
	return text, nil
}

// maxEscape is the most bytes that encode one byte.
const maxEscape = 6

// The reasons for leaving out records without an ID.
var (
	errNoHandle     = errors.New("has no id.handle")
	errNoObjectID   = errors.New("has no code_object_id")
	errNoKernelID   = errors.New("has no kernel_id")
	errNoDispatchID = errors.New("has no dispatch_info.dispatch_id")
	errNoObject     = errors.New("has no record.pc.code_object_id")
	errNoOffset     = errors.New("has no record.pc.code_object_offset")
)

// agent is a processor: a GPU or a CPU.
type agent struct {
	name  string
	id    string // the user's name for it
	lanes uint32 // of a wave
}

// The members of an agent (rocprofiler_agent_t).
const (
	agentHandle = iota
	agentType
	agentName
	agentLanes
	agentNode
)

var agentFields = []field{{path: "id.handle"}, {path: "type"}, {path: "name", isText: true}, {path: "wave_front_size"}, {path: "node_id"}}

// agentTypeGPU is ROCPROFILER_AGENT_TYPE_GPU.
const agentTypeGPU = 2

// maxLanes is the number of lanes in an execution mask.
const maxLanes = 64

func (p *process) addAgent(v *values) error {
	handle, ok := v.number(agentHandle)
	if !ok {
		return errNoHandle
	}
	if kind, _ := v.number(agentType); kind != agentTypeGPU {
		return nil
	}
	a := agent{name: string(v.text(agentName)), id: strconv.FormatUint(handle, 10)}
	if node, ok := v.number(agentNode); ok {
		a.id = strconv.FormatUint(node, 10)
	}
	if lanes, _ := v.number(agentLanes); lanes == 32 || lanes == maxLanes {
		a.lanes = uint32(lanes)
	}
	if before, again := p.agents[handle]; again {
		if before != a {
			return fmt.Errorf("agent %d is described twice, and differently: the first is used", handle)
		}
		return nil
	}
	if err := p.file.account(len(a.name) + 256); err != nil {
		return err
	}
	if len(p.agents) == 0 {
		p.lanes = a.lanes
	} else if p.lanes != a.lanes {
		p.lanes = 0
	}
	p.agents[handle] = a
	return nil
}

// agentID returns the user's name of an agent.
func (p *process) agentID(handle uint64) string {
	if a, ok := p.agents[handle]; ok {
		return a.id
	}
	return strconv.FormatUint(handle, 10)
}

// id31 converts a number to a process or thread ID; -1 where it is none.
func id31(n uint64, ok bool) int {
	if !ok || n > math.MaxInt32 {
		return -1
	}
	return int(n)
}
