// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
)

// This file is the side of a user who may not use JetStream himself: he asks a desk. A question is
// a request of NATS whose subject has the user's word, and its message is packed as all others
// are.

// askPrefix begins the subjects of questions. The user's word follows, and then anyDesk or the name
// of a desk.
const (
	askPrefix = "unwindd.ask.v1."
	anyDesk   = "any"
)

// question is the JSON of a question.
type question struct {
	About string `json:"about"` // a key of answers

	ID string `json:"id,omitempty"` // of a job

	// Of a job to be submitted. Its input follows the JSON, where it is small.
	Kind     string          `json:"kind,omitempty"`
	Options  json.RawMessage `json:"options,omitempty"`
	Deadline time.Time       `json:"deadline,omitzero"`
	Parts    int             `json:"parts,omitempty"`
	Priority string          `json:"priority,omitempty"`
	Again    bool            `json:"again,omitempty"`

	// Of a file to be stored, or of a job's input.
	Store  string `json:"store,omitempty"`
	Name   string `json:"name,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`

	// Of a piece of a file, and of a page of a list: where it begins.
	Transfer string `json:"transfer,omitempty"`
	Place    uint64 `json:"place,omitempty"`
}

// reply is the JSON of the answer to a question. A piece of a file, or a result, follows it.
type reply struct {
	Problem *Problem `json:"problem,omitempty"` // why there is no answer

	Submitted *Submitted `json:"submitted,omitempty"`
	Has       bool       `json:"has,omitempty"`  // the file is there, or was
	OK        bool       `json:"ok,omitempty"`   // it was canceled
	Desk      string     `json:"desk,omitempty"` // that has the transfer
	Transfer  string     `json:"transfer,omitempty"`
	Ended     bool       `json:"ended,omitempty"` // it was the last piece, or page
	Place     uint64     `json:"place,omitempty"` // of the next page
	Results   []*Result  `json:"results,omitempty"`
}

// errBusyDesk is the error of a desk that has as many questions of the user as it takes.
var errBusyDesk = errors.New("the desk has many questions of this user")

// problemNames are the names of errors in replies.
var problemNames = map[string]error{"full": ErrFull, "no-result": ErrNoResult, "refused": ErrRefused, "busy": errBusyDesk, "wrong-sum": errWrongSum}

// problemOf returns the problem of an error.
func problemOf(err error) *Problem {
	for name, known := range problemNames {
		if errors.Is(err, known) {
			return &Problem{name, err.Error()}
		}
	}
	return &Problem{"failed", err.Error()}
}

// told is an error that a desk has told.
type told struct {
	text string
	kind error // nil: it is none of problemNames
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.kind }

// client asks desks for a user.
type client struct {
	queue *Queue
	user  string // his word
}

// useDesk has the queue's user ask desks.
func (q *Queue) useDesk(ctx context.Context) error {
	user := word(q.userName())
	if !isWord(user) {
		return fmt.Errorf("%w: it may not use JetStream, and has no name of 1 to %d letters by which a worker would know it", ErrRefused, maxWord)
	}
	q.user, q.desk = user, &client{q, user}
	for {
		err := q.desk.hello(ctx)
		if !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no worker is there that would take what the user %s asks for: %w", user, err)
		case <-time.After(lookAtCluster):
		}
	}
}

// Pauses before a desk is asked again that has too many questions.
const (
	leastBusyPause = 5 * time.Millisecond
	mostBusyPause  = 500 * time.Millisecond
)

// ask asks a desk, "": any, and returns its answer and what follows it.
func (c *client) ask(ctx context.Context, desk string, about *question, data []byte) (*reply, []byte, error) {
	b, err := pack(about, data)
	if err != nil {
		return nil, nil, err
	}
	subject := askPrefix + c.user + "." + cmp.Or(desk, anyDesk)
	for pause := leastBusyPause; ; pause = min(2*pause, mostBusyPause) {
		r, rest, err := c.askOnce(ctx, subject, b)
		if !errors.Is(err, errBusyDesk) {
			return r, rest, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(pause):
		}
	}
}

func (c *client) askOnce(ctx context.Context, subject string, b []byte) (r *reply, data []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, deskPatience+ackPatience)
	defer cancel()
	err = c.queue.guard(ctx, func(ctx context.Context) error {
		m, err := c.queue.conn.RequestWithContext(ctx, subject, b)
		if err != nil {
			return err
		}
		r = &reply{}
		data, err = unpack(m.Data, r)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if p := r.Problem; p != nil {
		return nil, nil, &told{p.Detail, problemNames[p.Name]}
	}
	return r, data, nil
}

func (c *client) hello(ctx context.Context) error {
	_, _, err := c.ask(ctx, "", &question{About: askHello}, nil)
	return err
}

// submit submits a job.
func (c *client) submit(ctx context.Context, j *job, how How, input io.ReadSeeker) (*Submitted, error) {
	q := &question{
		About: askSubmit, Kind: j.Kind, Options: j.Options, SHA256: j.Input, Size: j.Size,
		Deadline: j.Deadline, Parts: j.Parts, Priority: how.Priority, Again: how.Again,
	}
	var data []byte
	if _, err := input.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if j.Size <= c.queue.maxInline() {
		var err error
		if data, err = io.ReadAll(io.LimitReader(input, j.Size)); err != nil {
			return nil, err
		}
	}
	r, _, err := c.ask(ctx, "", q, data)
	if err == nil && r.Submitted == nil { // the desk wants the input first
		if _, err = c.put(ctx, deskInputs, j.Input, j.Input, j.Size, input); err != nil {
			return nil, err
		}
		q.Again = false // what there was is removed
		r, _, err = c.ask(ctx, "", q, nil)
	}
	if err == nil && r.Submitted == nil {
		err = errors.New("the queue has lost the input: it may be too full")
	}
	if err != nil {
		return nil, err
	}
	return r.Submitted, nil
}

// put stores a file, unless it is there.
func (c *client) put(ctx context.Context, store, name, sum string, size int64, f io.Reader) (sent bool, err error) {
	r, _, err := c.ask(ctx, "", &question{About: askPut, Store: store, Name: name, SHA256: sum, Size: size}, nil)
	if err != nil || r.Has {
		return false, err
	}
	piece := make([]byte, c.queue.pieceSize())
	for place := uint64(1); ; place++ {
		n, err := io.ReadFull(f, piece)
		isLast := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !isLast {
			return false, err // the desk forgets what came
		}
		about := &question{About: askPiece, Transfer: r.Transfer, Place: place}
		if isLast {
			about.About = askLastPiece
		}
		if _, _, err := c.ask(ctx, r.Desk, about, piece[:n]); err != nil {
			return false, err
		}
		if isLast {
			return true, nil
		}
	}
}

func (c *client) drop(ctx context.Context, name string) error {
	_, _, err := c.ask(ctx, "", &question{About: askDrop, Name: name}, nil)
	return err
}

func (c *client) result(ctx context.Context, id string) (*Result, error) {
	_, data, err := c.ask(ctx, "", &question{About: askResult, ID: id}, nil)
	if err != nil {
		return nil, err
	}
	return readResult(id, data)
}

// report writes a report that is not in its result.
func (c *client) report(ctx context.Context, result *Result, w io.Writer) error {
	r, _, err := c.ask(ctx, "", &question{About: askReport, ID: result.ID}, nil)
	if err != nil {
		return err
	}
	sum := newSum(w)
	for place := uint64(1); ; place++ {
		next, data, err := c.ask(ctx, r.Desk, &question{About: askMore, Transfer: r.Transfer, Place: place}, nil)
		if err == nil {
			_, err = sum.Write(data)
		}
		if err != nil {
			return err
		}
		if next.Ended {
			return checkSum("the report of "+result.ID, sum.Hash, result.SHA256)
		}
	}
}

func (c *client) cancel(ctx context.Context, id string) (ok bool, err error) {
	r, _, err := c.ask(ctx, "", &question{About: askCancel, ID: id}, nil)
	return err == nil && r.OK, err
}

// results calls found with all results, without their reports.
func (c *client) results(ctx context.Context, found func(*Result) error) error {
	for place := uint64(1); ; {
		r, _, err := c.ask(ctx, "", &question{About: askList, Place: place}, nil)
		if err != nil {
			return err
		}
		for _, one := range r.Results {
			if err := found(one); err != nil {
				return err
			}
		}
		if r.Ended || r.Place <= place {
			return nil
		}
		place = r.Place
	}
}
