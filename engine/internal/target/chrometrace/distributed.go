// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

// Distributed is the part that a process has in a job, as PyTorch's profiler writes it into a trace.
type Distributed struct {
	// PID is the ID of the process, and Host its host; 0 and "" where they are not known.
	PID  int64
	Host string
	// Rank is its rank, and Size the number of ranks; -1: they are not known.
	Rank, Size int64
	Backend    string // "nccl"
}

// ReadDistributed reads the part of a trace's process in its job. A trace without one, or of several processes, gives
// an error.
func ReadDistributed(path string, data []byte) (*Distributed, error) {
	r := &distributedReader{reader: reader{json: &jsontext.Reader{Data: data}, texts: map[string]uint32{}}, pids: map[int64]bool{}}
	r.out.Rank, r.out.Size = -1, -1
	if r.json.Next() != '{' {
		return nil, fmt.Errorf("%s: %s: it is a list of events, expected an object with distributedInfo, as PyTorch's profiler writes", path, Form)
	}
	if err := r.json.Object(r.readMember); err != nil && !errors.Is(err, errFound) {
		return nil, fmt.Errorf("%s: %s: %w", path, Form, err)
	}
	if r.out.PID == 0 && len(r.pids) == 1 {
		for r.out.PID = range r.pids { // the only one
		}
	}
	switch {
	case r.out.Rank < 0:
		return nil, fmt.Errorf("%s: %s: it has no distributedInfo with a rank: the process was in no job, or was recorded before init_process_group", path, Form)
	case r.out.PID == 0:
		return nil, fmt.Errorf("%s: %s: the ID of the process that it is of is not known: it has %d processes with work of PyTorch, and none is labelled as the CPU", path, Form, len(r.pids))
	}
	return &r.out, nil
}

// distributedReader reads a trace as far as it is needed for that.
type distributedReader struct {
	reader
	out  Distributed
	pids map[int64]bool // of processes that called operations
}

// maxPIDs bounds the processes that are told apart.
const maxPIDs = 1 << 10

// maxPID bounds the ID of a process.
const maxPID = 1 << 31

func (r *distributedReader) readMember(name []byte) error {
	switch string(name) {
	case "distributedInfo":
		if r.json.Next() == '{' {
			return r.json.Object(r.readInfo)
		}
	case "host_name", "hostname":
		if r.json.Next() == '"' {
			var err error
			r.out.Host, err = r.json.Name()
			return err
		}
	case eventList:
		return r.readProcess()
	}
	return skip(r.json)
}

func (r *distributedReader) readInfo(name []byte) error {
	for _, member := range []struct {
		name string
		into *int64
	}{{"rank", &r.out.Rank}, {"world_size", &r.out.Size}} {
		if string(name) != member.name {
			continue
		}
		if n, ok := r.number(); ok && n.integer >= 0 && n.integer < maxPID {
			*member.into = n.integer
			return nil
		}
	}
	if string(name) == "backend" && r.json.Next() == '"' {
		var err error
		r.out.Backend, err = r.json.Name()
		return err
	}
	return skip(r.json)
}

// readProcess finds the process among the events: the one that is labelled as the CPU, or the only one that called
// operations. Processors have numbers of processes of their own.
func (r *distributedReader) readProcess() error {
	return r.json.Array(func(int) error {
		start := *r.json
		if err := r.readEvent(); err != nil {
			*r.json = start
			return skip(r.json)
		}
		e := &r.event
		pid := e.thread.pid
		if pid <= 0 || pid >= maxPID {
			return nil
		}
		if e.phase == 'M' && string(e.name) == "process_labels" && string(e.labels) == "CPU" {
			r.out.PID = pid
			if r.out.Rank >= 0 {
				return errFound // the rest is events
			}
		}
		if role := roleOf(e.category); (role == roleOperator || role == rolePython) && len(r.pids) < maxPIDs {
			r.pids[pid] = true
		}
		return nil
	})
}
