// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// version is the version of messages, which is in their subjects.
const version = 1

// Task is a command with its options.
type Task struct {
	// Kind is the command: stack, profile, snapshot or compare.
	Kind string `json:"kind"`
	// Options are the message of servicepb for the kind, as JSON with sorted fields.
	Options json.RawMessage `json:"options"`
	// Part is set in the task of a part; see split.go.
	Part *Part `json:"part,omitempty"`
	// Joined are the sizes of the results of parts, where a job is joined from them: they
	// follow the Size bytes of the input.
	Joined []int64 `json:"-"`
	Size   int64   `json:"-"`
	// User is the word of the user whose job it is; "": the account's.
	User string `json:"-"`
}

// job is a message of the queue.
type job struct {
	Version int `json:"version"`
	Task
	Input     string    `json:"input"` // its SHA-256, in hexadecimal
	Size      int64     `json:"size"`  // bytes of the input
	Deadline  time.Time `json:"deadline,omitzero"`
	Submitted time.Time `json:"submitted"`
	Parts     int       `json:"parts,omitempty"` // in which it is done; the result is the same
	Data      []byte    `json:"-"`               // the input, where it is in the message
}

// id returns the job's ID, which jobs with the same task and input share.
func (j *job) id() string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %s %s %s", j.Version, j.Kind, j.Input, j.Options)
	if j.Part != nil {
		_, _ = fmt.Fprintf(h, " part %d of %d", j.Part.Index, j.Part.Count)
	}
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
	return j.checkParts()
}

// State is the outcome of a job.
type State string

// The states.
const (
	Done     State = "done"     // there is a report
	Failed   State = "failed"   // the task or its input is at fault
	Parked   State = "parked"   // it was tried several times, and never came to an end
	Canceled State = "canceled" // its caller canceled it
	Expired  State = "expired"  // its deadline passed
)

// States lists all states.
var States = []State{Done, Failed, Parked, Canceled, Expired}

// Problem is the reason why there is no report: the name and the detail of a daemon's
// problem.
type Problem struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// Result is the result of a job. Queue.Report reads its report.
type Result struct {
	Version int      `json:"version"`
	ID      string   `json:"id"`
	State   State    `json:"state"`
	Kind    string   `json:"kind"`
	Whole   string   `json:"whole,omitempty"`   // the ID of the job that it is a part of
	Name    string   `json:"name,omitempty"`    // of the input
	Type    string   `json:"type,omitempty"`    // of the report, in HTTP's syntax
	Problem *Problem `json:"problem,omitempty"` // where there is no report
	Facts
	Tries   int       `json:"tries"`             // how often the job came to an end, good or bad
	Reasons []string  `json:"reasons,omitempty"` // why it was begun again
	Worker  string    `json:"worker,omitempty"`
	Begun   time.Time `json:"begun,omitzero"`
	Ended   time.Time `json:"ended"`
	Size    int64     `json:"size"`             // bytes of the report
	SHA256  string    `json:"sha256,omitempty"` // of the report
	Object  string    `json:"object,omitempty"` // where the store of reports has it
	Data    []byte    `json:"-"`                // the report, where it is in the message
}

// Facts are the daemon's statements about a report that are not in it.
type Facts struct {
	// Unwalked is why nothing could be walked, for lack of an architecture.
	Unwalked string   `json:"unwalked,omitempty"`
	Stacks   int      `json:"stacks,omitempty"`   // that were written
	Frames   int      `json:"frames,omitempty"`   // of them
	Problems []string `json:"problems,omitempty"` // of a snapshot: the parts of the target that it lacks
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

// A message is the length of a JSON text in 4 bytes, then that text about a job, then the
// job's input or report, where it is small.
const lengthBytes = 4

// pack makes a message.
func pack(about any, data []byte) ([]byte, error) {
	text, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, lengthBytes+len(text)+len(data))
	b = binary.BigEndian.AppendUint32(b, uint32(len(text))) //nolint:gosec // options are bounded
	return append(append(b, text...), data...), nil
}

// unpack reads a message. The data is part of it.
func unpack(b []byte, about any) (data []byte, err error) {
	if len(b) < lengthBytes {
		return nil, fmt.Errorf("a message of %d bytes, expected %d or more", len(b), lengthBytes)
	}
	n, b := binary.BigEndian.Uint32(b), b[lengthBytes:]
	if uint64(n) > uint64(len(b)) {
		return nil, fmt.Errorf("a message with %d bytes of JSON, and %d bytes are there", n, len(b))
	}
	return b[n:], json.Unmarshal(b[:n], about)
}

// readJob reads the message of a job.
func readJob(b []byte) (*job, error) {
	j := &job{}
	var err error
	if j.Data, err = unpack(b, j); err == nil {
		err = j.check()
	}
	return j, err
}

// readJobOf is readJob for the job with an ID, which its content has to have.
func readJobOf(id string, b []byte) (*job, error) {
	j, err := readJob(b)
	if err == nil && j.id() != id {
		err = fmt.Errorf("a job called %.100s, expected %s", id, j.id())
	}
	if err == nil && len(j.Data) > 0 {
		err = writeChecked("the input", j.Data, j.Input, io.Discard)
	}
	return j, err
}

// errForged is wrapped by the error of a message that is no result of its job.
var errForged = errors.New("it is no result")

// readResult reads the result of a job.
func readResult(id string, b []byte) (*Result, error) {
	r := &Result{}
	var err error
	if r.Data, err = unpack(b, r); err == nil {
		err = r.check()
	}
	if err == nil && r.ID != id {
		err = fmt.Errorf("it is of the job %.100q", r.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("the result of %s: %w: %w", id, errForged, err)
	}
	return r, nil
}

// isSame reports whether two results are of the same try.
func (r *Result) isSame(other *Result) bool {
	return r.Worker == other.Worker && r.Begun.Equal(other.Begun) && r.Ended.Equal(other.Ended) && r.Object == other.Object
}

const (
	// maxInline bounds an input or a report inside a message: messages are stored for each
	// job, objects of a store once.
	maxInline = 256 << 10
	// maxOptions bounds the options of a job, in bytes.
	maxOptions = 128 << 10
)

// maxInline returns the bound of an input or a report inside a message of this queue, whose
// servers bound messages, by default to 1 MiB.
func (q *Queue) maxInline() int64 {
	return max(min(maxInline, q.conn.MaxPayload()-2*maxOptions), 0)
}
