// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// version is that of messages, which their subjects have.
const version = 1

// A Task is what is asked.
type Task struct {
	// Kind is the command: stack, profile or snapshot.
	Kind string `json:"kind"`
	// Options are the message of servicepb for the kind, as JSON with its members sorted.
	Options json.RawMessage `json:"options"`
}

// A job is a message of the queue.
type job struct {
	Version int `json:"version"`
	Task
	Input     string    `json:"input"`          // its SHA-256, in hexadecimal
	Size      int64     `json:"size"`           // bytes of the input
	Data      []byte    `json:"data,omitempty"` // the input, where it is small and not empty
	Deadline  time.Time `json:"deadline,omitzero"`
	Submitted time.Time `json:"submitted"`
}

// id is the job's: that of every job which asks the same of the same.
func (j *job) id() string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %s %s %s", j.Version, j.Kind, j.Input, j.Options)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// check refuses a message that no client writes.
func (j *job) check() error {
	switch {
	case j.Version != version:
		return fmt.Errorf("a job of version %d, expected %d", j.Version, version)
	case len(j.Input) != 2*sha256.Size:
		return fmt.Errorf("an input called %.100q, expected a SHA-256", j.Input)
	case j.Size < 0, len(j.Data) > 0 && int64(len(j.Data)) != j.Size:
		return fmt.Errorf("an input of %d bytes, with %d of them in the message", j.Size, len(j.Data))
	}
	return nil
}

// A State is what became of a job.
type State string

// The states.
const (
	Done     State = "done"     // there is a report
	Failed   State = "failed"   // what was asked, or what it was asked of, is at fault
	Parked   State = "parked"   // it was tried several times, and never came to an end
	Canceled State = "canceled" // its caller canceled it
	Expired  State = "expired"  // its deadline passed
)

// States are all of them.
var States = []State{Done, Failed, Parked, Canceled, Expired}

// A Problem is why there is no report: the name and the detail of a problem of the daemon.
type Problem struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// A Result is what came of a job. Its report is read by Queue.Report.
type Result struct {
	Version int      `json:"version"`
	ID      string   `json:"id"`
	State   State    `json:"state"`
	Kind    string   `json:"kind"`
	Name    string   `json:"name,omitempty"`    // of what it was asked of
	Type    string   `json:"type,omitempty"`    // of the report, as of HTTP
	Problem *Problem `json:"problem,omitempty"` // where there is no report
	Facts
	Tries   int       `json:"tries"`             // how often the job came to an end, of whatever kind
	Reasons []string  `json:"reasons,omitempty"` // why it was begun again
	Worker  string    `json:"worker,omitempty"`
	Begun   time.Time `json:"begun,omitzero"`
	Ended   time.Time `json:"ended"`
	Size    int64     `json:"size"`             // bytes of the report
	SHA256  string    `json:"sha256,omitempty"` // of the report
	Data    []byte    `json:"data,omitempty"`   // the report, where it is small
	Object  string    `json:"object,omitempty"` // where it is not: of the store of reports
}

// Facts are what is said of a report beside it, as a daemon says it.
type Facts struct {
	// Unwalked says why nothing could be walked, for lack of an architecture.
	Unwalked string   `json:"unwalked,omitempty"`
	Stacks   int      `json:"stacks,omitempty"`   // that were written
	Frames   int      `json:"frames,omitempty"`   // of them
	Problems []string `json:"problems,omitempty"` // of a snapshot: what of the target is not in it
}

// check refuses a message that no worker writes.
func (r *Result) check() error {
	switch {
	case r.Version != version:
		return fmt.Errorf("a result of version %d, expected %d", r.Version, version)
	case !slices.Contains(States, r.State):
		return fmt.Errorf("a result of state %.100q", r.State)
	case r.Size < 0, len(r.Data) > 0 && int64(len(r.Data)) != r.Size:
		return fmt.Errorf("a report of %d bytes, with %d of them in the message", r.Size, len(r.Data))
	}
	return nil
}

const (
	// maxInline is how many bytes of an input, or a report, are in a message at most. A
	// message has 1 MiB at most, and bytes in JSON are a third longer.
	maxInline = 256 << 10
	// maxOptions bounds the options of a job, in bytes.
	maxOptions = 128 << 10
)
