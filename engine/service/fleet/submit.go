// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// NewTask makes a task of a kind and its options, a message of servicepb.
func NewTask(kind string, options proto.Message) (Task, error) {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(options)
	if err != nil {
		return Task{}, err
	}
	// protojson's blanks differ between builds: the job's ID must not.
	var members any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		return Task{}, err
	}
	if b, err = json.Marshal(members); err != nil {
		return Task{}, err
	}
	if len(b) > maxOptions {
		return Task{}, fmt.Errorf("the options have %d bytes, expected at most %d", len(b), maxOptions)
	}
	return Task{Kind: kind, Options: b}, nil
}

// ReadOptions reads the options of a task.
func (t *Task) ReadOptions(options proto.Message) error {
	return protojson.Unmarshal(t.Options, options)
}

// How has the options of doing a job.
type How struct {
	Priority string    // one of Priorities; "": normal
	Deadline time.Time // after which the result is not needed; zero: none
	Again    bool      // even where there is a result
	Parts    int       // in which workers do it; 0, 1: it is not divided
}

// Submitted is a job that waits, or has a result.
type Submitted struct {
	ID        string
	Known     bool // it was submitted before
	HasResult bool
}

// Submit submits a job with a file as the input. A job that waits, or has a result, is not
// submitted a second time.
func (q *Queue) Submit(ctx context.Context, t Task, input io.ReadSeeker, how How) (*Submitted, error) {
	if how.Priority == "" {
		how.Priority = "normal"
	}
	if !slices.Contains(Priorities, how.Priority) {
		return nil, fmt.Errorf("a priority %q, expected one of %v", how.Priority, Priorities)
	}
	j := &job{Version: version, Task: t, Deadline: how.Deadline, Submitted: time.Now().UTC(), Parts: how.Parts}
	if err := j.checkParts(); err != nil {
		return nil, err
	}
	var err error
	if j.Input, j.Size, err = digest(input); err != nil {
		return nil, err
	}
	if q.desk != nil {
		return q.desk.submit(ctx, j, how, input)
	}
	var s *Submitted
	err = q.guard(ctx, func(ctx context.Context) (err error) {
		s, err = q.submit(ctx, j, how, func() error { return q.sendInput(ctx, j, input) })
		return err
	})
	return s, err
}

// submit submits a job, unless it waits or has a result; sendInput puts its input into its message
// or the store.
func (q *Queue) submit(ctx context.Context, j *job, how How, sendInput func() error) (*Submitted, error) {
	id := j.id()
	isKept, err := q.isKept(ctx, id, how.Again)
	if isKept || err != nil {
		return &Submitted{id, true, true}, err
	}
	if err := sendInput(); err != nil {
		return nil, err
	}
	isNew, err := q.enqueue(ctx, how.Priority, id, j)
	if err != nil {
		return nil, err
	}
	return &Submitted{ID: id, Known: !isNew}, nil
}

// isKept reports whether a job has a result that stays. One that it has because its deadline
// passed, or because it was canceled, says nothing to who submits it anew.
func (q *Queue) isKept(ctx context.Context, id string, again bool) (bool, error) {
	r, err := q.result(ctx, id)
	switch {
	case errors.Is(err, ErrNoResult):
		return false, nil
	case err != nil && !errors.Is(err, errForged):
		return false, err
	case err == nil && !again && r.State != Expired && r.State != Canceled:
		return true, nil
	}
	_ = q.tries.Purge(ctx, id) // there may be none
	// The worker whose result this is may not have acknowledged its message yet: that message
	// would stand in the new one's place, and go.
	q.removeJob(ctx, id)
	return false, q.dropResult(ctx, id)
}

// sendInput puts the input of a job into its message, or into the store.
func (q *Queue) sendInput(ctx context.Context, j *job, input io.ReadSeeker) error {
	most := q.maxInline()
	if j.Size > most {
		if _, err := input.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := q.keep(ctx, q.inputs, j.Input, j.Input, input)
		return err
	}
	if _, err := input.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var err error
	j.Data, err = io.ReadAll(io.LimitReader(input, most+1))
	if err == nil && int64(len(j.Data)) != j.Size {
		err = errors.New("the input was changed while it was read")
	}
	return err
}

// enqueue publishes a job. isNew is false where it waits already.
func (q *Queue) enqueue(ctx context.Context, priority, id string, j *job) (isNew bool, err error) {
	b, err := pack(j, j.Data)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, ackPatience)
	defer cancel()
	subject := q.subject(jobsPrefix) + priority + "." + id
	_, err = q.js.Publish(ctx, subject, b)
	if isTaken(err) {
		var isGone bool
		if isGone, err = q.makeRoom(ctx, priority, id, j); !isGone || err != nil {
			return false, err
		}
		_, err = q.js.Publish(ctx, subject, b)
	}
	if err != nil {
		return false, full(err)
	}
	return true, q.conn.Publish(wakeSubject, []byte(q.user))
}

// makeRoom removes the message that waits under a job's ID, where it is not that job, or would
// expire before it.
func (q *Queue) makeRoom(ctx context.Context, priority, id string, j *job) (isGone bool, err error) {
	jobs := q.jobs[priority]
	m, err := jobs.GetLastMsgForSubject(ctx, q.subject(jobsPrefix)+priority+"."+id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true, nil // a worker has done it meanwhile
	}
	if err != nil {
		return false, err
	}
	waits, err := readJobOf(id, m.Data)
	if err == nil && (waits.Deadline.IsZero() || !j.Deadline.IsZero() && !j.Deadline.After(waits.Deadline)) {
		return false, nil
	}
	if err := jobs.DeleteMsg(ctx, m.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return false, err
	}
	return true, nil
}

// isTaken reports whether a subject had a message already.
func isTaken(err error) bool {
	var e *jetstream.APIError
	return errors.As(err, &e) && (e.Description == subjectIsTaken ||
		e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
